import type { BodyOf } from '../../operations.ts';

/* The filter of a segment as the rows and groups of its form. */

export type SegmentFilter = BodyOf<'/web-setup/segments/preview', 'post'>['filter'];

/** Rows and groups of which all, or at least one, must match; with `negated`, contacts that do not match. */
export interface ConditionGroup {
  key: number;
  join: 'all' | 'any';
  negated: boolean;
  items: (Condition | ConditionGroup)[];
}

/** A row: a field, an operator, and a value as text. */
export interface Condition {
  key: number;
  /** Of FIELDS. */
  field: FieldName;
  /** The name of a custom field. */
  custom: string;
  op: string;
  value: string;
  /** A filter that the form cannot show as a row, unchanged. */
  other?: SegmentFilter;
}

type FieldKind = 'text' | 'time' | 'custom' | 'status' | 'consent' | 'group' | 'days' | 'joined' | 'other';

/** The fields of the rows, in the order of their list. */
export const FIELDS = {
  email: 'text',
  firstName: 'text',
  lastName: 'text',
  phone: 'text',
  source: 'text',
  customField: 'custom',
  globalStatus: 'status',
  consentMethod: 'consent',
  consentTimestamp: 'time',
  createdAt: 'time',
  updatedAt: 'time',
  group: 'group',
  joined: 'joined',
  received: 'days',
  opened: 'days',
  clicked: 'days',
  other: 'other',
} as const satisfies Record<string, FieldKind>;
export type FieldName = keyof typeof FIELDS;

const TEXT_OPS = ['is', 'isNot', 'contains', 'startsWith', 'exists', 'absent'] as const;
const DAY_OPS = ['withinDays', 'notWithinDays'] as const;

/** The operators of each kind of field; `absent` and `notMember` are negations. */
export const OPS_OF = {
  text: TEXT_OPS,
  custom: [...TEXT_OPS, 'lessThan', 'greaterThan', 'before', 'after', 'isTrue', 'isFalse'],
  time: ['before', 'after', 'exists', 'absent'],
  status: ['is', 'isNot'],
  consent: ['is', 'isNot', 'exists', 'absent'],
  group: ['member', 'former', 'notMember'],
  joined: DAY_OPS,
  days: DAY_OPS,
  other: [],
} as const satisfies Record<FieldKind, readonly string[]>;
export type OpName = (typeof OPS_OF)[FieldKind][number];

export function opsOf(field: FieldName): readonly OpName[] {
  return OPS_OF[FIELDS[field]];
}

/** What a row asks for after its operator. */
export type ValueKind = 'none' | 'text' | 'number' | 'date' | 'days' | 'status' | 'consent' | 'group';

export function valueKindOf({ field, op }: Pick<Condition, 'field' | 'op'>): ValueKind {
  const kind = FIELDS[field];
  if (['exists', 'absent', 'isTrue', 'isFalse'].includes(op) || kind === 'other') return 'none';
  if (kind === 'status' || kind === 'consent' || kind === 'group') return kind;
  if (kind === 'joined' || kind === 'days') return 'days';
  if (op === 'lessThan' || op === 'greaterThan') return 'number';
  return op === 'before' || op === 'after' ? 'date' : 'text';
}

let keys = 0;

/** A row of a field with its first operator. */
export function newCondition(field: FieldName = 'email'): Condition {
  return { key: ++keys, field, custom: '', op: opsOf(field)[0] ?? '', value: defaultOf(field) };
}

function defaultOf(field: FieldName): string {
  if (FIELDS[field] === 'status') return 'active';
  if (FIELDS[field] === 'consent') return 'double_opt_in';
  return valueKindOf({ field, op: opsOf(field)[0] ?? '' }) === 'days' ? '30' : '';
}

export function newGroup(items: ConditionGroup['items'] = [newCondition()]): ConditionGroup {
  return { key: ++keys, join: 'all', negated: false, items };
}

export function isGroup(item: Condition | ConditionGroup): item is ConditionGroup {
  return 'items' in item;
}

/** Whether every row has what it asks for. */
export function isComplete(item: Condition | ConditionGroup): boolean {
  if (isGroup(item)) return item.items.length > 0 && item.items.every(isComplete);
  if (item.field === 'customField' && item.custom.trim() === '') return false;
  return valueKindOf(item) === 'none' || item.value.trim() !== '';
}

/** The filter of a form that is complete. */
export function filterOf(item: Condition | ConditionGroup): SegmentFilter {
  if (!isGroup(item)) return filterOfRow(item);
  const inner = item.items.map(filterOf);
  const joined: SegmentFilter = item.join === 'all' ? { all: inner } : { any: inner };
  return item.negated ? { not: joined } : joined;
}

function filterOfRow({ field, custom, op, value, other }: Condition): SegmentFilter {
  if (other !== undefined) return other;
  if (field === 'group') {
    if (op === 'notMember') return { not: { group: value } };
    return { group: value, active: op === 'member' };
  }
  if (field === 'joined' || field === 'received' || field === 'opened' || field === 'clicked')
    return { [field]: { [op]: Number(value) } };
  const name = field === 'customField' ? `customFields.${custom.trim()}` : field;
  if (op === 'absent') return { not: { field: name, op: 'exists' } };
  if (op === 'exists') return { field: name, op };
  if (op === 'isTrue' || op === 'isFalse') return { field: name, op: 'is', value: op === 'isTrue' };
  const isNumber = op === 'lessThan' || op === 'greaterThan';
  // Sound: the other operators of the rows are those of the API.
  return { field: name, op: op as NonNullable<SegmentFilter['op']>, value: isNumber ? Number(value) : value };
}

/** The form of a filter. */
export function groupOf(filter: SegmentFilter): ConditionGroup {
  const item = itemOf(filter);
  return isGroup(item) ? item : newGroup([item]);
}

function itemOf(filter: SegmentFilter): Condition | ConditionGroup {
  const { all, any, not } = filter;
  const inner = all ?? any;
  if (inner !== undefined) return { ...newGroup(inner.map(itemOf)), join: all === undefined ? 'any' : 'all' };
  if (not === undefined) return rowOf(filter) ?? otherRow(filter);
  if (not.group !== undefined && not.active !== false)
    return { ...newCondition('group'), op: 'notMember', value: not.group };
  const row = rowOf(not);
  if (row?.op === 'exists') return { ...row, op: 'absent' };
  // Each of the two operators is the negation of the other.
  if (row !== null && valueKindOf(row) === 'days')
    return { ...row, op: row.op === 'withinDays' ? 'notWithinDays' : 'withinDays' };
  const group = groupOf(not);
  return { ...(group.negated ? newGroup([group]) : group), negated: true };
}

/** Null: no row shows it. */
function rowOf(filter: SegmentFilter): Condition | null {
  const { field, op, value, group, active } = filter;
  if (group !== undefined)
    return { ...newCondition('group'), op: active === false ? 'former' : 'member', value: group };
  for (const name of ['joined', 'received', 'opened', 'clicked'] as const) {
    const when = filter[name];
    if (when === undefined) continue;
    const days = DAY_OPS.find((each) => when[each] !== undefined);
    return days === undefined || 'group' in when
      ? null
      : { ...newCondition(name), op: days, value: String(when[days]) };
  }
  if (field === undefined || op === undefined) return null;
  const isCustom = field.startsWith('customFields.');
  const name = isCustom ? 'customField' : field;
  if (!isFieldName(name)) return null;
  const row = { ...newCondition(name), custom: isCustom ? field.slice('customFields.'.length) : '' };
  if (op === 'exists') return { ...row, op: value === false ? 'absent' : 'exists' };
  if (typeof value === 'boolean') return op === 'is' ? { ...row, op: value ? 'isTrue' : 'isFalse' } : null;
  // A number that is compared with `is` would become a text.
  if (typeof value === 'number' && op !== 'lessThan' && op !== 'greaterThan') return null;
  return opsOf(name).some((each) => each === op) ? { ...row, op, value: String(value) } : null;
}

function isFieldName(name: string): name is FieldName {
  return Object.hasOwn(FIELDS, name);
}

function otherRow(filter: SegmentFilter): Condition {
  return { ...newCondition('other'), other: filter };
}
