import type { DataOf } from '../../operations.ts';
import { FactList } from '../../parts/fact-list.tsx';
import { Figure, FigureRow } from '../../parts/figures.tsx';
import { FirstRows } from '../../parts/first-rows.tsx';
import { Card, Table } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';

/** What an import, or its check, has done so far. */
export type ImportOutcome = Extract<DataOf<'/web-setup/contacts/import', 'post'>, { rejectedRows: unknown }>;

const FIGURES = [
  { name: 'rows', color: '--c-accepted' },
  { name: 'created', color: '--c-delivered' },
  { name: 'updated', color: '--c-opened' },
  { name: 'unchanged', color: '--c-accepted' },
  { name: 'rejected', color: '--c-bounced' },
] as const;
/** In the order of their weight. */
export const HYGIENE_KINDS = [
  'syntax',
  'no_mail_service',
  'typo',
  'disposable',
  'duplicate',
  'role',
] as const satisfies HygieneKind[];
export type HygieneKind = NonNullable<ImportOutcome['hygiene']>['findings'][number]['kind'];

/** What became of the memberships, if the contacts were added to a group. */
const MEMBERSHIPS = ['subscribed', 'optedOut'] as const;

/** The counts of an import and its rejected rows. `ignored`: about columns that were not read. */
export function ImportCounts({
  of,
  ignored,
}: {
  of: Pick<
    ImportOutcome,
    (typeof FIGURES)[number]['name'] | (typeof MEMBERSHIPS)[number] | 'rejectedRows' | 'hygiene'
  >;
  ignored: string[];
}) {
  const { t, number, percent } = useTexts();
  return (
    <>
      <FigureRow>
        {FIGURES.map(({ name, color }) => (
          <Figure
            key={name}
            color={color}
            label={t(`contacts.import.${name}`)}
            value={number(of[name])}
            note={name === 'rows' ? '' : percent(of[name], of.rows)}
          />
        ))}
      </FigureRow>
      {MEMBERSHIPS.some((name) => of[name] > 0) && (
        <FactList facts={MEMBERSHIPS.map((name) => [t(`contacts.import.${name}`), number(of[name])])} />
      )}
      {ignored.length > 0 && (
        <ul>
          {ignored.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
      {of.hygiene !== null && <Hygiene of={of.hygiene} />}
      {of.rejected > 0 && (
        <Card title={t('contacts.import.rejected')}>
          <RejectedRows of={of} />
        </Card>
      )}
    </>
  );
}

/** What was found about the addresses, by kind, with the lines of the first findings; nothing when nothing was found. */
function Hygiene({ of: { counts, findings } }: { of: NonNullable<ImportOutcome['hygiene']> }) {
  const { t, number } = useTexts();
  const found = HYGIENE_KINDS.filter((kind) => counts[kind] > 0);
  if (found.length === 0) return null;
  return (
    <Card title={t('contacts.hygiene')}>
      <Table
        label={t('contacts.hygiene')}
        isList
        heads={[t('suppressions.reason'), { text: t('page.contacts'), end: true }, t('contacts.import.line')]}
      >
        {found.map((kind) => (
          <tr key={kind}>
            <th scope="row">{t(`contacts.hygiene.${kind}`)}</th>
            <td class="aside end">{number(counts[kind])}</td>
            <td class="second">{linesOf(findings, kind)}</td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

/** Lines that are shown of a kind. */
const SHOWN_LINES = 10;

function linesOf(findings: NonNullable<ImportOutcome['hygiene']>['findings'], kind: HygieneKind): string {
  const lines = findings
    .filter((each) => each.kind === kind)
    .map(({ line, detail }) =>
      kind === 'typo' && detail !== undefined ? `${line} (${detail}?)` : String(line),
    );
  return lines.length > SHOWN_LINES ? `${lines.slice(0, SHOWN_LINES).join(', ')}, …` : lines.join(', ');
}

/** The rows that an import rejected, with the reasons; the API lists the first ones. */
export function RejectedRows({ of }: { of: Pick<ImportOutcome, 'rejected' | 'rejectedRows'> }) {
  const { t } = useTexts();
  return (
    <>
      {of.rejectedRows.length > 0 && (
        <FirstRows rows={of.rejectedRows}>
          {(rows) => (
            <Table
              label={t('contacts.import.rejected')}
              isList
              heads={[t('contacts.import.line'), t('suppressions.reason')]}
            >
              {rows.map(({ line, reason }) => (
                <tr key={line}>
                  <th scope="row" class="labelled">
                    {line}
                  </th>
                  <td class="second">{reason}</td>
                </tr>
              ))}
            </Table>
          )}
        </FirstRows>
      )}
      {of.rejected > of.rejectedRows.length && (
        <p class="small more-rows">
          {t('contacts.import.moreRejected', { count: of.rejected - of.rejectedRows.length })}
        </p>
      )}
    </>
  );
}
