import { useTexts } from '../../texts.ts';

/** Whether the organization of a report has signed it, or who else. */
export function SignedBy({ report }: { report: { verified: boolean; signer: string | null } }) {
  const { t } = useTexts();
  const { verified, signer } = report;
  return (
    <p class="small">
      {signer !== null && t('reports.verified', { signer })}
      {signer !== null && !verified && '. '}
      {!verified && t('reports.unverified')}
    </p>
  );
}
