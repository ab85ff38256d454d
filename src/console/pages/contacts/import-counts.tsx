import type { DataOf } from '../../operations.ts';
import { Table } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';

/** What an import, or its check, has done so far. */
export type ImportOutcome = Extract<DataOf<'/web-setup/contacts/import', 'post'>, { rejectedRows: unknown }>;

const COUNTS = ['rows', 'created', 'updated', 'unchanged', 'subscribed', 'optedOut', 'rejected'] as const;

/** The counts of an import and its rejected rows. `ignored`: about columns that were not read. */
export function ImportCounts({
  of,
  ignored,
}: {
  of: Pick<ImportOutcome, (typeof COUNTS)[number] | 'rejectedRows'>;
  ignored: string[];
}) {
  const { t } = useTexts();
  return (
    <>
      <dl class="facts">
        {COUNTS.map((name) => (
          <div key={name}>
            <dt>{t(`contacts.import.${name}`)}</dt>
            <dd>{of[name]}</dd>
          </div>
        ))}
      </dl>
      {ignored.length > 0 && (
        <ul>
          {ignored.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
      <RejectedRows of={of} />
    </>
  );
}

/** The rows that an import rejected, with the reasons; the API lists the first ones. */
export function RejectedRows({ of }: { of: Pick<ImportOutcome, 'rejected' | 'rejectedRows'> }) {
  const { t } = useTexts();
  return (
    <>
      {of.rejectedRows.length > 0 && (
        <Table
          label={t('contacts.import.rejected')}
          heads={[t('contacts.import.line'), t('suppressions.reason')]}
        >
          {of.rejectedRows.map(({ line, reason }) => (
            <tr key={line}>
              <th scope="row">{line}</th>
              <td>{reason}</td>
            </tr>
          ))}
        </Table>
      )}
      {of.rejected > of.rejectedRows.length && (
        <p class="small">
          {t('contacts.import.moreRejected', { count: of.rejected - of.rejectedRows.length })}
        </p>
      )}
    </>
  );
}
