import { Chip, Copy, Status, Table } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import type { CheckedDomain } from './domain.tsx';
import { zoneFile } from './zone-file.ts';

export type ShownRecord = CheckedDomain['records'][number];

/** The records with a copy button for each value, and as a zone file. */
export function RecordsToPublish({ domain }: { domain: CheckedDomain }) {
  const { t } = useTexts();
  const { records } = domain;
  const recommended = records.filter(({ isRequired }) => !isRequired);
  return (
    <>
      <p>{t('domains.publish', { domain: domain.domain })}</p>
      <p>
        <a
          class="button"
          download={`${domain.domain}.zone`}
          href={`data:text/plain;charset=utf-8,${encodeURIComponent(zoneFile(records))}`}
        >
          {t('domains.zone')}
        </a>
      </p>
      <Records
        title={t('domains.records')}
        domain={domain.domain}
        records={records.filter(({ isRequired }) => isRequired)}
      />
      {recommended.length > 0 && (
        <Records title={t('domains.recommended')} domain={domain.domain} records={recommended} />
      )}
    </>
  );
}

interface RecordsProps {
  title: string;
  domain: string;
  records: readonly ShownRecord[];
}

function Records({ title, domain, records }: RecordsProps) {
  const { t } = useTexts();
  return (
    <>
      <h2>{title}</h2>
      <Table
        label={title}
        heads={[
          t('domains.type'),
          t('domains.recordName'),
          t('domains.value'),
          t('domains.result'),
          t('domains.purpose'),
        ]}
      >
        {records.map((record) => (
          <tr key={keyOf(record)}>
            <th scope="row">{record.type}</th>
            <td class="value">
              <CopiedName record={record} domain={domain} />
            </td>
            <td class="value">
              <CopiedValue record={record} />
            </td>
            <td>
              <Result record={record} />
            </td>
            <td>
              {record.purpose}
              <p class="small">{record.description}</p>
            </td>
          </tr>
        ))}
      </Table>
    </>
  );
}

/** The name of a record, also as DNS providers ask for it that append the domain. */
export function CopiedName({
  record,
  domain,
}: {
  record: Pick<ShownRecord, 'type' | 'name'>;
  domain: string;
}) {
  const { t } = useTexts();
  const { type, name } = record;
  const relative =
    name === domain ? '@' : name.endsWith(`.${domain}`) ? name.slice(0, -domain.length - 1) : name;
  const label = (text: string) => t('domains.copyOf', { what: text, name: `${type} ${name}` });
  return (
    <>
      {name} <Copy text={name} label={label(t('domains.recordName'))} />
      {relative !== name && (
        <p>
          {relative} <Copy text={relative} label={label(t('domains.relativeName'))} />
        </p>
      )}
    </>
  );
}

/** The value of a record. */
export function CopiedValue({
  record,
}: {
  record: Pick<ShownRecord, 'type' | 'name' | 'value' | 'priority'>;
}) {
  const { t } = useTexts();
  const { type, name, value, priority } = record;
  return (
    <>
      {priority === undefined ? '' : `${priority} `}
      {value}{' '}
      <Copy text={value} label={t('domains.copyOf', { what: t('domains.value'), name: `${type} ${name}` })} />
    </>
  );
}

/** What is expected next to what the last check found, for every record. */
export function CheckedRecords({ domain }: { domain: CheckedDomain }) {
  const { t } = useTexts();
  const required = domain.records.filter(({ isRequired }) => isRequired);
  const recommended = domain.records.filter(({ isRequired }) => !isRequired);
  return (
    <>
      {domain.status === 'SUCCESS' && (
        <p class="notice">{t('domains.verified', { domain: domain.domain })}</p>
      )}
      <Comparison title={t('domains.records')} records={required} />
      {recommended.length > 0 && <Comparison title={t('domains.recommended')} records={recommended} />}
    </>
  );
}

function Comparison({ title, records }: { title: string; records: readonly ShownRecord[] }) {
  const { t } = useTexts();
  return (
    <>
      <h2>{title}</h2>
      <Table
        label={title}
        heads={[
          t('domains.record'),
          t('domains.result'),
          t('domains.expected'),
          t('domains.found'),
          t('domains.hint'),
        ]}
      >
        {records.map((record) => {
          const { type, name, value, purpose, lastResult } = record;
          const expected = lastResult?.expected ?? value;
          // Only differences are of interest.
          const shown = (text: string) => (lastResult?.result === 'ok' ? shortened(text) : text);
          return (
            <tr key={keyOf(record)}>
              <th scope="row">
                {purpose ?? (type === 'MX' ? 'MX' : 'DKIM')}
                <p class="value">
                  {type} {name}{' '}
                  <Copy
                    text={name}
                    label={t('domains.copyOf', { what: t('domains.recordName'), name: `${type} ${name}` })}
                  />
                </p>
              </th>
              <td>
                <Result record={record} />
              </td>
              <td class="value">
                {shown(expected)}{' '}
                <Copy
                  text={recordValue(expected)}
                  label={t('domains.copyOf', { what: t('domains.expected'), name: `${type} ${name}` })}
                />
              </td>
              <td class="value">
                {lastResult === null ? '' : shown(lastResult.found ?? t('domains.nothing'))}
              </td>
              <td>{withoutKey(lastResult?.hint ?? '', recordValue(expected))}</td>
            </tr>
          );
        })}
      </Table>
    </>
  );
}

function Result({ record: { lastResult, isRequired } }: { record: ShownRecord }) {
  const { t } = useTexts();
  return lastResult === null ? (
    <span class="small">{t('domains.notChecked')}</span>
  ) : lastResult.result === 'missing' && !isRequired ? (
    <Chip kind="idle">{t('domains.result.missing')}</Chip>
  ) : (
    <Status name={lastResult.result} prefix="domains.result" />
  );
}

const keyOf = ({ type, name, value }: ShownRecord) => `${type} ${name} ${value}`;

/** A hint without the whole of a long value, which is next to it. */
const withoutKey = (hint: string, value: string) =>
  value === '' ? hint : hint.replaceAll(value, shortened(value));

const shortened = (text: string) => (text.length > LONG_VALUE ? `${text.slice(0, LONG_VALUE)}…` : text);

const LONG_VALUE = 80;

/** What a DNS host asks for: a check writes the type before values other than TXT, and the priority of an MX record. */
const recordValue = (expected: string) => expected.replace(/^(?:CNAME|MX \d+) /, '');
