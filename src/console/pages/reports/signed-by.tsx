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

/** The time that a report is about: days, with the exact times on demand. */
export function ReportPeriod({ begin, end }: { begin: string; end: string }) {
  const { locale, time } = useTexts();
  const format = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' });
  // It ends at the midnight after its last day.
  const [first, last] = [format.format(Date.parse(begin)), format.format(Date.parse(end) - 1)];
  return <span title={`${time(begin)} – ${time(end)}`}>{first === last ? first : `${first} – ${last}`}</span>;
}
