import type { ComponentChildren } from 'preact';
import { Chip, Copy, Notice, Status } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import { type ComparedText, comparedTexts } from './compared-texts.ts';
import type { CheckedDomain } from './domain.tsx';

export type ShownRecord = CheckedDomain['records'][number];

interface RecordListProps {
  domain: CheckedDomain;
  /** Shows what the last check found, and the values of records that pass only in part. */
  isChecked?: boolean;
}

/** All records as cards, the required ones first: what to publish, or what was found instead. */
export function RecordList({ domain, isChecked = false }: RecordListProps) {
  const { t } = useTexts();
  const required = domain.records.filter(({ isRequired }) => isRequired);
  const recommended = domain.records.filter(({ isRequired }) => !isRequired);
  const cards = (title: string, records: readonly ShownRecord[]) => (
    <>
      <h2>{title}</h2>
      <ul class="records">
        {records.map((record) => (
          <RecordCard
            key={`${record.type} ${record.name} ${record.value}`}
            {...{ record, domain: domain.domain, isChecked }}
          />
        ))}
      </ul>
    </>
  );
  return (
    <>
      {isChecked && domain.status === 'SUCCESS' && (
        <Notice kind="ok" title={t('domains.verified', { domain: domain.domain })} />
      )}
      {!isChecked && <p>{t('domains.publish', { domain: domain.domain })}</p>}
      {cards(t('domains.records'), required)}
      {recommended.length > 0 && cards(t('domains.recommended'), recommended)}
    </>
  );
}

interface RecordCardProps {
  record: ShownRecord;
  domain: string;
  isChecked: boolean;
}

function RecordCard({ record, domain, isChecked }: RecordCardProps) {
  const { t } = useTexts();
  const { type, name, purpose, description } = record;
  return (
    <li class="card record" aria-label={`${type} ${name}`}>
      <div class="card-head">
        <span class="record-type">{type}</span>
        <h3>{purpose ?? (type === 'MX' ? 'MX' : 'DKIM')}</h3>
        <Result record={record} />
      </div>
      <dl class="facts card-body">
        <Fact label={t('domains.recordName')}>
          <CopiedName record={record} domain={domain} />
        </Fact>
        {isChecked ? (
          <Comparison record={record} />
        ) : (
          <Fact label={t('domains.value')}>
            <CopiedValue record={record} />
          </Fact>
        )}
      </dl>
      {isChecked ? (
        <Hint record={record} />
      ) : (
        description !== undefined && <p class="record-text small">{description}</p>
      )}
    </li>
  );
}

/** What is expected, and what the last check found instead, with the differences marked. */
function Comparison({ record }: { record: ShownRecord }) {
  const { t } = useTexts();
  const { type, name, lastResult } = record;
  const expected = expectedOf(record);
  const isFine = lastResult?.result === 'ok';
  const found = isFine ? null : (lastResult?.found ?? null);
  const compared = found === null ? null : comparedTexts(expected, found);
  return (
    <>
      <Fact label={t('domains.expected')}>
        {compared !== null && <Compared parts={compared.expected} tag="ins" />}
        {compared === null && (isFine ? shortened(expected) : expected)}{' '}
        <Copy
          text={recordValue(expected)}
          label={t('domains.copyOf', { what: t('domains.expected'), name: `${type} ${name}` })}
        />
      </Fact>
      {lastResult !== null && !isFine && (
        <Fact label={t('domains.found')}>
          {compared === null ? t('domains.nothing') : <Compared parts={compared.found} tag="del" />}
        </Fact>
      )}
    </>
  );
}

function Hint({ record }: { record: ShownRecord }) {
  const { t } = useTexts();
  const hint = withoutKey(record.lastResult?.hint ?? '', recordValue(expectedOf(record)));
  if (hint === '') return null;
  return (
    <p class="record-hint">
      <strong>{t('domains.hint')}</strong> {hint}
    </p>
  );
}

function Fact({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd class="value">{children}</dd>
    </div>
  );
}

/** A text with its differences marked: `ins` what is missing, `del` what is too much. */
function Compared({ parts, tag: Tag }: { parts: readonly ComparedText[]; tag: 'ins' | 'del' }) {
  return (
    <span>
      {parts.map(({ text, isDifferent }, index) => (isDifferent ? <Tag key={index}>{text}</Tag> : text))}
    </span>
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
        <>
          {' '}
          <span class="record-short">
            {relative} <Copy text={relative} label={label(t('domains.relativeName'))} />
          </span>
        </>
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

function Result({ record: { lastResult, isRequired } }: { record: ShownRecord }) {
  const { t } = useTexts();
  return lastResult === null ? (
    <Chip kind="idle">{t('domains.notChecked')}</Chip>
  ) : lastResult.result === 'missing' && !isRequired ? (
    <Chip kind="idle">{t('domains.result.missing')}</Chip>
  ) : (
    <Status name={lastResult.result} prefix="domains.result" />
  );
}

/** What the last check expected; before one, the value to publish. */
const expectedOf = ({ lastResult, value }: ShownRecord) => lastResult?.expected ?? value;

/** A hint without the whole of a long value, which is above it. */
const withoutKey = (hint: string, value: string) =>
  value === '' ? hint : hint.replaceAll(value, shortened(value));

const shortened = (text: string) => (text.length > LONG_VALUE ? `${text.slice(0, LONG_VALUE)}…` : text);

const LONG_VALUE = 80;

/** What a DNS host asks for: a check writes the type before values other than TXT, and the priority of an MX record. */
const recordValue = (expected: string) => expected.replace(/^(?:CNAME|MX \d+) /, '');
