import * as z from 'zod';
import { parseMoment } from '../../core/clock.ts';
import { CONSENT_METHODS } from '../../store/contacts/consent.ts';
import { GLOBAL_STATUSES } from '../../store/contacts/contacts.ts';

/*
 * The filter of a segment: conditions on one contact, joined by `all`, `any` and `not`. The schema validates everything
 * that does not depend on the account, so that each error has the path of its field, for example `filter.all[1].op`.
 */

/** Conditions on a field of the contact. `value` is absent with `exists`, where it is true. */
export const OPS = [
  'is',
  'isNot',
  'contains',
  'startsWith',
  'before',
  'after',
  'lessThan',
  'greaterThan',
  'exists',
] as const;
export type Op = (typeof OPS)[number];

/** Fields with text; custom fields have the prefix `customFields.`. */
const TEXT_FIELDS = ['email', 'phone', 'firstName', 'lastName', 'language', 'source', 'addedBy'] as const;
/** Fields with a time. */
const TIME_FIELDS = ['createdAt', 'updatedAt', 'consentTimestamp'] as const;
/** Fields with one of a few values; a contact without consent has no `consentMethod`. */
const CHOICES = { globalStatus: GLOBAL_STATUSES, consentMethod: CONSENT_METHODS } as const;
export const CUSTOM_PREFIX = 'customFields.';

const TEXT_OPS: readonly Op[] = ['is', 'isNot', 'contains', 'startsWith', 'exists'];
const TIME_OPS: readonly Op[] = ['before', 'after', 'exists'];
const CHOICE_OPS: readonly Op[] = ['is', 'isNot', 'exists'];

/** What happens between the account and a contact. `received`: a marketing message was delivered. */
export const ENGAGEMENTS = ['opened', 'clicked', 'received'] as const;

export const MAX_CONDITIONS = 50;
export const MAX_FILTER_DEPTH = 8;
const MAX_TEXT = 500;
const MAX_FIELD = CUSTOM_PREFIX.length + 100;
const MAX_ID = 100;
const MAX_DAYS = 3650;

/** When something happened; exactly one field. `notWithinDays`: not since then, or never. */
export interface When {
  withinDays?: number | undefined;
  notWithinDays?: number | undefined;
  /** It happened to a message of this campaign. */
  campaignId?: string | undefined;
}

/** When the contact joined a group; without `group`, any group. */
export interface Joined {
  withinDays?: number | undefined;
  notWithinDays?: number | undefined;
  group?: string | undefined;
}

/** Exactly one condition: `field` with `op`, `group` with `active`, or one of the other fields. */
export interface SegmentFilter {
  all?: SegmentFilter[] | undefined;
  any?: SegmentFilter[] | undefined;
  not?: SegmentFilter | undefined;
  field?: string | undefined;
  op?: Op | undefined;
  value?: string | number | boolean | undefined;
  /** A subscription group. */
  group?: string | undefined;
  /** Default: true. */
  active?: boolean | undefined;
  opened?: When | undefined;
  clicked?: When | undefined;
  received?: When | undefined;
  joined?: Joined | undefined;
  inactive?: Inactive | undefined;
}

/** For how long a contact has done nothing with the marketing mail that it received. */
export interface Inactive {
  months: number;
  messages: number;
}

/** Of a condition, and of the sunset rule. */
export const INACTIVE_MONTHS = { min: 6, max: 36 };
export const MAX_INACTIVE_MESSAGES = 1000;

/** The fields of `inactive`. */
export const inactiveFields = {
  months: z
    .int()
    .min(INACTIVE_MONTHS.min)
    .max(INACTIVE_MONTHS.max)
    .describe('For so many months the contact has opened and clicked nothing and given no other sign.'),
  messages: z
    .int()
    .min(1)
    .max(MAX_INACTIVE_MESSAGES)
    .describe('Marketing messages that it has received since then, at least.'),
};

const inactive = z
  .looseObject(inactiveFields)
  .superRefine((given, context) => onlyKnown(given, ['months', 'messages'], context))
  .meta({ id: 'SegmentInactive' });

const days = z.int().min(1).max(MAX_DAYS).optional();
const id = z.string().min(1).max(MAX_ID).optional();

const DAYS = ['withinDays', 'notWithinDays'] as const;
const WHEN = [...DAYS, 'campaignId'] as const;

const when = z
  .looseObject({
    withinDays: days.describe('At least once in the last N days.'),
    notWithinDays: days.describe('Not in the last N days, or never.'),
    campaignId: id.describe('A message of this campaign.'),
  })
  .superRefine((given, context) => {
    onlyKnown(given, WHEN, context);
    exactlyOne(given, WHEN, context);
  })
  .meta({ id: 'SegmentEngagement', description: 'Exactly one of the fields.' });

const joined = z
  .looseObject({
    withinDays: days.describe('In the last N days.'),
    notWithinDays: days.describe('Not in the last N days, or never.'),
    group: id.describe('The subscription group; without it, any group.'),
  })
  .superRefine((given, context) => {
    onlyKnown(given, [...DAYS, 'group'], context);
    exactlyOne(given, DAYS, context);
  })
  .meta({ id: 'SegmentJoined' });

const KINDS = ['all', 'any', 'not', 'field', 'group', ...ENGAGEMENTS, 'joined', 'inactive'] as const;

/**
 * The filter of a segment, of a step of a sequence, and of its goal. At most MAX_CONDITIONS conditions, nested at most
 * MAX_FILTER_DEPTH deep. Unknown fields are refused: without them the filter would match other contacts.
 */
export const segmentFilter: z.ZodType<SegmentFilter> = z
  .looseObject({
    get all(): z.ZodOptional<z.ZodArray<z.ZodType<SegmentFilter>>> {
      return z
        .array(segmentFilter)
        .min(1)
        .max(MAX_CONDITIONS)
        .optional()
        .describe('Every one of these filters.');
    },
    get any(): z.ZodOptional<z.ZodArray<z.ZodType<SegmentFilter>>> {
      return z
        .array(segmentFilter)
        .min(1)
        .max(MAX_CONDITIONS)
        .optional()
        .describe('At least one of these filters.');
    },
    get not(): z.ZodOptional<z.ZodType<SegmentFilter>> {
      return segmentFilter.optional().describe('Contacts that do not match this filter.');
    },
    field: z
      .string()
      .max(MAX_FIELD)
      .optional()
      .describe(
        `A field of the contact (${[...TEXT_FIELDS, ...TIME_FIELDS, ...Object.keys(CHOICES)].map((name) => `\`${name}\``).join(', ')}) or \`customFields.<name>\`.`,
      ),
    op: z.enum(OPS).optional().describe('With `field`.'),
    value: z
      .union([z.string().max(MAX_TEXT), z.number(), z.boolean()])
      .optional()
      .describe('With `field` and `op`, except that `exists` means `true` without it.'),
    group: id.describe('A subscription group: its members.'),
    active: z
      .boolean()
      .optional()
      .describe('With `group`: active members (`true`, the default), or those who left.'),
    opened: when.optional(),
    clicked: when.optional(),
    received: when.optional(),
    joined: joined.optional(),
    inactive: inactive
      .optional()
      .describe(
        'Contacts that have done nothing with marketing mail for a long time, as the sunset rule finds them.',
      ),
  })
  .superRefine((given, context) => {
    onlyKnown(given, [...KINDS, 'op', 'value', 'active'], context);
    checkSize(given, context);
    if (!exactlyOne(given, KINDS, context)) return;
    for (const name of ['op', 'value'] as const)
      if (given[name] !== undefined && given.field === undefined) issue(context, [name], 'requires a field');
    if (given.active !== undefined && given.group === undefined)
      issue(context, ['active'], 'requires a group');
    if (given.field !== undefined) checkField(given.field, given, context);
  })
  .meta({ id: 'SegmentFilter', description: 'Exactly one condition.' });

/** Refuses a filter with too many conditions, or conditions that are nested too deep. */
function checkSize(filter: SegmentFilter, context: Issues): void {
  let conditions = 0;
  const walk = (one: SegmentFilter, depth: number): boolean => {
    if (depth > MAX_FILTER_DEPTH) return false;
    const inner = childrenOf(one);
    if (inner === null) conditions++;
    return inner?.every((child) => walk(child, depth + 1)) ?? true;
  };
  if (!walk(filter, 1)) issue(context, [], `must be nested at most ${MAX_FILTER_DEPTH} levels deep`);
  if (conditions > MAX_CONDITIONS) issue(context, [], `must have at most ${MAX_CONDITIONS} conditions`);
}

/** The filters that a filter joins; null: it is a condition. */
export function childrenOf({ all, any, not }: SegmentFilter): SegmentFilter[] | null {
  return all ?? any ?? (not === undefined ? null : [not]);
}

type Issues = Pick<z.RefinementCtx, 'addIssue'>;

function issue(context: Issues, path: PropertyKey[], message: string): void {
  context.addIssue({ code: 'custom', path, message });
}

function onlyKnown(given: object, names: readonly string[], context: Issues): void {
  for (const name of Object.keys(given)) if (!names.includes(name)) issue(context, [name], 'is not a field');
}

function exactlyOne<Name extends string>(
  given: Partial<Record<Name, unknown>>,
  names: readonly Name[],
  context: Issues,
): boolean {
  const found = names.filter((name) => given[name] !== undefined);
  if (found.length === 1) return true;
  const [first, second] = found;
  if (first !== undefined && second !== undefined)
    issue(context, [second], `cannot be combined with ${first}`);
  else issue(context, [], `must have one of ${names.join(', ')}`);
  return false;
}

function checkField(field: string, { op, value }: SegmentFilter, context: Issues): void {
  const ops = opsOf(field);
  if (ops === null) return issue(context, ['field'], fieldFault(field));
  if (op === undefined) return issue(context, ['op'], 'is required');
  if (!ops.includes(op)) return issue(context, ['op'], `must be one of ${ops.join(', ')} for ${field}`);
  const fault = valueFault(field, op, value);
  if (fault !== null) issue(context, ['value'], fault);
}

/** Null: there is no such field. */
function opsOf(field: string): readonly Op[] | null {
  if (field.startsWith(CUSTOM_PREFIX)) return field.length > CUSTOM_PREFIX.length ? OPS : null;
  if (Object.hasOwn(CHOICES, field)) return CHOICE_OPS;
  if (isTimeField(field)) return TIME_OPS;
  return isOneOf(TEXT_FIELDS, field) ? TEXT_OPS : null;
}

function fieldFault(field: string): string {
  const names = [...TEXT_FIELDS, ...TIME_FIELDS, ...Object.keys(CHOICES)].join(', ');
  return `is not a field of contacts: ${JSON.stringify(field)}; must be customFields.<name> or one of ${names}`;
}

function valueFault(field: string, op: Op, value: SegmentFilter['value']): string | null {
  if (op === 'exists')
    return value === undefined || typeof value === 'boolean' ? null : 'must be true or false';
  if (value === undefined) return 'is required';
  if (op === 'lessThan' || op === 'greaterThan')
    return typeof value === 'number' ? null : `must be a number with ${op}`;
  if (op === 'before' || op === 'after')
    return typeof value === 'string' && parseMoment(value) !== null
      ? null
      : `must be a date such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z, with ${op}`;
  if (op === 'contains' || op === 'startsWith')
    return typeof value === 'string' && value !== '' ? null : `must be a text with ${op}`;
  if (field === 'globalStatus' || field === 'consentMethod') {
    const choices = CHOICES[field];
    return isOneOf(choices, value) ? null : `must be one of ${choices.join(', ')}`;
  }
  return null;
}

/** Whether a field of the contact has a time. */
export function isTimeField(field: string): field is (typeof TIME_FIELDS)[number] {
  return isOneOf(TIME_FIELDS, field);
}

function isOneOf(names: readonly string[], value: unknown): boolean {
  return typeof value === 'string' && names.includes(value);
}
