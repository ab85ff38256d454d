import './builder.css';
import { useOperation } from '../../data.ts';
import { Button } from '../../parts/button.tsx';
import { useTexts } from '../../texts.ts';
import {
  type Condition,
  type ConditionGroup,
  FIELDS,
  type FieldName,
  isGroup,
  newCondition,
  newGroup,
  opsOf,
  valueKindOf,
} from './conditions.ts';

/** Groups in groups that the form offers; deeper ones of the API are shown. */
const MAX_OFFERED_DEPTH = 3;

const STATUSES = ['active', 'unsubscribed', 'bounced', 'complained', 'suppressed'] as const;
const METHODS = ['double_opt_in', 'single_opt_in', 'web_form', 'imported', 'implicit_api', 'other'] as const;

interface BuilderProps {
  group: ConditionGroup;
  onChange: (group: ConditionGroup) => void;
}

/** The filter of a segment as a form: rows of field, operator and value, in groups. */
export function Builder({ group, onChange }: BuilderProps) {
  const list = useOperation('/web-setup/contacts/subscription-groups', { limit: 200 });
  const groups = (list.value?.groups ?? []).map(({ subscriptionGroupId: id, name }) => ({ id, name }));
  return <Group of={group} depth={1} groups={groups} onChange={onChange} onRemove={null} />;
}

interface Choice {
  id: string;
  name: string;
}

interface GroupProps {
  of: ConditionGroup;
  depth: number;
  groups: readonly Choice[];
  onChange: (group: ConditionGroup) => void;
  /** Null: the group of the whole segment. */
  onRemove: (() => void) | null;
}

function Group({ of: group, depth, groups, onChange, onRemove }: GroupProps) {
  const { t } = useTexts();
  const { items } = group;
  const set = (n: number, item: Condition | ConditionGroup) =>
    onChange({ ...group, items: items.map((each, at) => (at === n ? item : each)) });
  const remove = (n: number) => onChange({ ...group, items: items.filter((_, at) => at !== n) });
  const add = (item: Condition | ConditionGroup) => onChange({ ...group, items: [...items, item] });
  const join = `${group.negated ? 'not-' : ''}${group.join}`;
  return (
    <fieldset class={`conditions${depth > 1 ? ' nested' : ''}`}>
      <legend class="conditions-head">
        <label>
          <span class="unseen">{t('segments.join')}</span>
          <select
            class="select"
            value={join}
            onChange={({ currentTarget: { value } }) =>
              onChange({
                ...group,
                negated: value.startsWith('not-'),
                join: value.endsWith('any') ? 'any' : 'all',
              })
            }
          >
            {(['all', 'any', 'not-all', 'not-any'] as const).map((each) => (
              <option key={each} value={each}>
                {t(`segments.join.${each}`)}
              </option>
            ))}
          </select>
        </label>
        {onRemove !== null && (
          <Button label={t('segments.removeGroup')} kind="ghost" icon="x" isIconOnly onClick={onRemove} />
        )}
      </legend>
      <ul class="conditions-list">
        {items.map((item, n) => (
          <li key={item.key}>
            {isGroup(item) ? (
              <Group
                of={item}
                depth={depth + 1}
                groups={groups}
                onChange={(next) => set(n, next)}
                onRemove={() => remove(n)}
              />
            ) : (
              <Row
                of={item}
                groups={groups}
                onChange={(next) => set(n, next)}
                onRemove={items.length > 1 || onRemove !== null ? () => remove(n) : null}
              />
            )}
          </li>
        ))}
      </ul>
      <div class="conditions-add">
        <Button label={t('segments.addCondition')} icon="plus" onClick={() => add(newCondition())} />
        {depth < MAX_OFFERED_DEPTH && (
          <Button
            label={t('segments.addGroup')}
            kind="ghost"
            icon="plus"
            onClick={() => add({ ...newGroup(), join: group.join === 'all' ? 'any' : 'all' })}
          />
        )}
      </div>
    </fieldset>
  );
}

interface RowProps {
  of: Condition;
  groups: readonly Choice[];
  onChange: (condition: Condition) => void;
  /** Null: the only condition stays. */
  onRemove: (() => void) | null;
}

function Row({ of: row, groups, onChange, onRemove }: RowProps) {
  const { t } = useTexts();
  if (row.other !== undefined)
    return (
      <div class="condition other">
        <code>{JSON.stringify(row.other)}</code>
        {onRemove !== null && <RemoveButton onRemove={onRemove} />}
      </div>
    );
  const kind = valueKindOf(row);
  const setOp = (op: string) => {
    const next = { ...row, op };
    onChange(valueKindOf(next) === kind ? next : { ...next, value: '' });
  };
  return (
    <div class="condition">
      <label class="condition-field">
        <span class="unseen">{t('segments.field')}</span>
        <select
          class="select"
          value={row.field}
          onChange={({ currentTarget: { value } }) =>
            onChange({ ...newCondition(fieldNamed(value)), key: row.key })
          }
        >
          {FIELD_NAMES.map((field) => (
            <option key={field} value={field}>
              {t(`segments.field.${field}`)}
            </option>
          ))}
        </select>
      </label>
      {row.field === 'customField' && (
        <label class="condition-custom">
          <span class="unseen">{t('segments.customName')}</span>
          <input
            class="input"
            value={row.custom}
            placeholder={t('segments.customName')}
            maxLength={100}
            autocomplete="off"
            autocapitalize="none"
            onInput={({ currentTarget: { value } }) => onChange({ ...row, custom: value })}
          />
        </label>
      )}
      <label class="condition-op">
        <span class="unseen">{t('segments.op')}</span>
        <select class="select" value={row.op} onChange={({ currentTarget: { value } }) => setOp(value)}>
          {opsOf(row.field).map((op) => (
            <option key={op} value={op}>
              {t(`segments.op.${op}`)}
            </option>
          ))}
        </select>
      </label>
      {kind !== 'none' && (
        <label class={`condition-value ${kind === 'days' ? 'with-unit' : ''}`}>
          <span class="unseen">{t('segments.value')}</span>
          <Value of={row} groups={groups} onChange={(value) => onChange({ ...row, value })} />
          {kind === 'days' && <span class="condition-unit">{t('segments.days')}</span>}
        </label>
      )}
      {onRemove !== null && <RemoveButton onRemove={onRemove} />}
    </div>
  );
}

function RemoveButton({ onRemove }: { onRemove: () => void }) {
  const { t } = useTexts();
  return <Button label={t('segments.removeCondition')} kind="ghost" icon="x" isIconOnly onClick={onRemove} />;
}

interface ValueProps {
  of: Condition;
  groups: readonly Choice[];
  onChange: (value: string) => void;
}

function Value({ of: row, groups, onChange }: ValueProps) {
  const { t } = useTexts();
  const kind = valueKindOf(row);
  const choices =
    kind === 'status'
      ? STATUSES.map((id) => ({ id, name: t(`groups.status.${id}`) }))
      : kind === 'consent'
        ? METHODS.map((id) => ({ id, name: t(`groups.consent.${id}`) }))
        : kind === 'group'
          ? [{ id: '', name: t('segments.chooseGroup') }, ...groups]
          : null;
  if (choices !== null)
    return (
      <select class="select" value={row.value} onChange={({ currentTarget: { value } }) => onChange(value)}>
        {choices.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    );
  const type = kind === 'date' ? 'date' : kind === 'text' ? 'text' : 'number';
  return (
    <input
      class="input"
      type={type}
      value={row.value}
      placeholder={kind === 'text' ? t('segments.value') : undefined}
      min={kind === 'days' ? 1 : undefined}
      max={kind === 'days' ? 3650 : undefined}
      step={kind === 'number' ? 'any' : undefined}
      maxLength={500}
      autocomplete="off"
      onInput={({ currentTarget: { value } }) => onChange(value)}
    />
  );
}

// The table has no other keys. `other` is only shown.
const FIELD_NAMES = (Object.keys(FIELDS) as FieldName[]).filter(
  (field): field is Exclude<FieldName, 'other'> => field !== 'other',
);

function fieldNamed(value: string): FieldName {
  return FIELD_NAMES.find((field) => field === value) ?? 'email';
}
