import { useState } from 'preact/hooks';
import { useTexts } from '../../texts.ts';
import { CONDITIONS, type ConditionKind, daysOf, type Filter, kindOfCondition } from './model.ts';
import type { Words } from './words.ts';
import './sequences.css';

interface ConditionFieldProps {
  filter: Filter;
  words: Words;
  label: string;
  onChange: (filter: Filter) => void;
}

/** A condition on the contact: one of the usual ones, or any filter as JSON. */
export function ConditionField({ filter, words, label, onChange }: ConditionFieldProps) {
  const { t } = useTexts();
  const [asJson, setAsJson] = useState(kindOfCondition(filter) === 'json');
  const kind = asJson ? 'json' : kindOfCondition(filter);
  const choose = (next: ConditionKind) => {
    setAsJson(next === 'json');
    if (next !== 'json') onChange(filterOf(next, daysOf(filter), words));
  };
  return (
    <div class="sequence-fields">
      <label class="field">
        {label}
        <select
          class="select"
          value={kind}
          // One of the options below.
          onChange={({ currentTarget: { value } }) => choose(value as ConditionKind)}
        >
          {CONDITIONS.map((each) => (
            <option key={each} value={each}>
              {t(`sequences.condition.${each}`)}
            </option>
          ))}
        </select>
      </label>
      {kind === 'field' && (
        <>
          <label class="field">
            {t('sequences.field')}
            <input
              class="input"
              required
              maxLength={113}
              spellcheck={false}
              value={filter.field ?? ''}
              onInput={({ currentTarget: { value } }) => onChange({ ...filter, field: value })}
            />
          </label>
          <label class="field">
            {t('sequences.value')}
            <input
              class="input"
              required
              maxLength={500}
              value={String(filter.value ?? '')}
              onInput={({ currentTarget: { value } }) => onChange({ ...filter, value })}
            />
          </label>
        </>
      )}
      {kind === 'group' && (
        <GroupField
          groupId={filter.group ?? ''}
          words={words}
          onChange={(group) => onChange({ group, active: true })}
        />
      )}
      {kind !== 'field' && kind !== 'group' && kind !== 'json' && (
        <label class="field">
          {t('sequences.inDays')}
          <input
            class="input"
            type="number"
            required
            min={1}
            max={3650}
            value={daysOf(filter)}
            onInput={({ currentTarget }) => onChange(filterOf(kind, currentTarget.valueAsNumber || 1, words))}
          />
        </label>
      )}
      {kind === 'json' && <JsonField filter={filter} onChange={onChange} />}
    </div>
  );
}

/** The choice of a group. */
export function GroupField(props: { groupId: string; words: Words; onChange: (id: string) => void }) {
  const { t } = useTexts();
  const { groupId, words, onChange } = props;
  const isListed = words.groups.some(({ subscriptionGroupId }) => subscriptionGroupId === groupId);
  return (
    <label class="field">
      {t('campaigns.group')}
      <select
        class="select"
        required
        value={groupId}
        onChange={({ currentTarget: { value } }) => onChange(value)}
      >
        <option value="">{t('campaigns.noChoice')}</option>
        {groupId !== '' && !isListed && <option value={groupId}>{groupId}</option>}
        {words.groups.map(({ subscriptionGroupId: id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function JsonField({ filter, onChange }: { filter: Filter; onChange: (filter: Filter) => void }) {
  const { t } = useTexts();
  const [text, setText] = useState(() => JSON.stringify(filter, null, 2));
  return (
    <label class="field wide">
      {t('sequences.filterJson')}
      <textarea
        class="textarea sequence-json"
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => {
          const { value } = currentTarget;
          setText(value);
          const parsed = parseFilter(value);
          currentTarget.setCustomValidity(parsed === null ? t('sequences.filterJson.invalid') : '');
          if (parsed !== null) onChange(parsed);
        }}
      />
    </label>
  );
}

/** Null: it is no JSON object. The server checks the rest. */
function parseFilter(text: string): Filter | null {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? (parsed as Filter) : null;
  } catch {
    // Not JSON yet.
    return null;
  }
}

function filterOf(kind: Exclude<ConditionKind, 'json'>, days: number, { groups }: Words): Filter {
  switch (kind) {
    case 'field':
      return { field: 'customFields.', op: 'is', value: '' };
    case 'group':
      return { group: groups[0]?.subscriptionGroupId ?? '', active: true };
    case 'opened':
      return { opened: { withinDays: days } };
    case 'notOpened':
      return { opened: { notWithinDays: days } };
    case 'clicked':
      return { clicked: { withinDays: days } };
    default:
      return { clicked: { notWithinDays: days } };
  }
}
