import { DAY, parseMoment } from '../../core/clock.ts';
import type { KnownContact } from '../../store/contacts/contacts.ts';
import { ENGAGEMENT_BITS, type EngagementRow } from '../../store/contacts/engagement.ts';
import type { Tables } from '../../store/tables.ts';
import { fold } from '../search-key.ts';
import {
  CUSTOM_PREFIX,
  ENGAGEMENTS,
  type Inactive,
  isTimeField,
  type SegmentFilter,
  type When,
} from './filter.ts';

/*
 * What a filter means. A condition is a test of one value of a contact, which its column names:
 *
 *   field:email, field:createdAt, …   the field; times in epoch ms
 *   custom:plan                       the custom field, as the account set it
 *   group:sgroup_…                    when an active member joined, in epoch ms; negative of one who left
 *   joined                            when the contact last joined a group of which it is an active member
 *   opened, clicked, received         when it last happened
 *   unanswered                        since when it received messages without a sign of it, and how many; null: none
 *   campaign:campaign_…               bits of ENGAGEMENT_BITS for the campaign
 *
 * A value is null or undefined where the contact has none. One contact (`matchesContact`) and all contacts of an account
 * are tested by the same conditions.
 */

/** A test of the value in a column. */
export interface Condition {
  column: string;
  test(value: unknown): boolean;
}

/** A filter whose conditions are compiled. */
export type CompiledFilter =
  | { all: CompiledFilter[] }
  | { any: CompiledFilter[] }
  | { not: CompiledFilter }
  | Condition;

/** `now`: epoch ms, from which days are counted back. */
export function compileFilter(filter: SegmentFilter, now: number): CompiledFilter {
  const compileAll = (filters: SegmentFilter[]) => filters.map((inner) => compileFilter(inner, now));
  if (filter.all !== undefined) return { all: compileAll(filter.all) };
  if (filter.any !== undefined) return { any: compileAll(filter.any) };
  if (filter.not !== undefined) return { not: compileFilter(filter.not, now) };
  return conditionOf(filter, now);
}

function conditionOf(filter: SegmentFilter, now: number): Condition {
  const { field, group, active = true, joined, inactive } = filter;
  if (field !== undefined) return { column: columnOfField(field), test: fieldTest(field, filter) };
  if (group !== undefined)
    return {
      column: `group:${group}`,
      test: (value) => typeof value === 'number' && value > 0 === active,
    };
  if (joined !== undefined)
    return {
      column: joined.group === undefined ? 'joined' : `group:${joined.group}`,
      test: timeTest(joined, now),
    };
  if (inactive !== undefined) return { column: 'unanswered', test: inactiveTest(inactive, now) };
  for (const kind of ENGAGEMENTS) {
    const given = filter[kind];
    if (given === undefined) continue;
    if (given.campaignId === undefined) return { column: kind, test: timeTest(given, now) };
    const bit = ENGAGEMENT_BITS[kind];
    return {
      column: `campaign:${given.campaignId}`,
      test: (value) => typeof value === 'number' && (value & bit) !== 0,
    };
  }
  throw new Error('a filter without a condition was not validated');
}

function columnOfField(field: string): string {
  return field.startsWith(CUSTOM_PREFIX) ? `custom:${field.slice(CUSTOM_PREFIX.length)}` : `field:${field}`;
}

/** A negative time, of someone who left, is not within. */
function timeTest({ withinDays, notWithinDays }: When, now: number): Condition['test'] {
  const since = now - (withinDays ?? notWithinDays ?? 0) * DAY;
  const isWithin = withinDays !== undefined;
  return (value) => (typeof value === 'number' && value >= since) === isWithin;
}

/** The months are those of the calendar, in UTC. */
function inactiveTest({ months, messages }: Inactive, now: number): Condition['test'] {
  const until = new Date(now);
  until.setUTCMonth(until.getUTCMonth() - months);
  const latest = until.getTime();
  return (value) => Array.isArray(value) && value[0] <= latest && value[1] >= messages;
}

/** The value of the column `unanswered`. */
export function unansweredValue(engagement: EngagementRow | null | undefined): [number, number] | null {
  const since = engagement?.unanswered_since ?? null;
  return engagement === null || engagement === undefined || since === null
    ? null
    : [since, engagement.unanswered];
}

/** A list matches when one of its entries does. Texts are compared without case and accents. */
function fieldTest(field: string, { op = 'exists', value: given = true }: SegmentFilter): Condition['test'] {
  const one = scalarTest(field, op === 'isNot' ? 'is' : op, given);
  const any: Condition['test'] = (value) => (Array.isArray(value) ? value.some(one) : one(value));
  if (op === 'exists') return (value) => isPresent(value) === given;
  return op === 'isNot' ? (value) => !any(value) : any;
}

function isPresent(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== null && value !== undefined && value !== '';
}

function scalarTest(
  field: string,
  op: NonNullable<SegmentFilter['op']>,
  given: NonNullable<SegmentFilter['value']>,
): Condition['test'] {
  const text = fold(String(given));
  switch (op) {
    case 'contains':
      return (value) => textOf(value)?.includes(text) ?? false;
    case 'startsWith':
      return (value) => textOf(value)?.startsWith(text) ?? false;
    case 'lessThan':
      return (value) => (numberOf(value) ?? Number.NaN) < Number(given);
    case 'greaterThan':
      return (value) => (numberOf(value) ?? Number.NaN) > Number(given);
    case 'before': {
      const moment = parseMoment(String(given)) ?? 0;
      return (value) => (momentOf(field, value) ?? Number.NaN) < moment;
    }
    case 'after': {
      // A date is the whole day: after it is from the next one on.
      const moment = (parseMoment(String(given)) ?? 0) + (isDate(String(given)) ? DAY - 1 : 0);
      return (value) => (momentOf(field, value) ?? Number.NaN) > moment;
    }
    default:
      return typeof given === 'number'
        ? (value) => numberOf(value) === given
        : (value) => textOf(value) === text;
  }
}

/** Null: the value has no text. */
function textOf(value: unknown): string | null {
  if (typeof value === 'string') return fold(value);
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}

const NUMBER = /^[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?$/i;

/** A number, also as a text: files that are imported have texts only. Null: it is none. */
function numberOf(value: unknown): number | null {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && NUMBER.test(value.trim()) ? Number(value) : null;
}

/** A time of the contact, or a text with a date or time. Null: it is none. */
function momentOf(field: string, value: unknown): number | null {
  if (typeof value === 'number') return isTimeField(field) ? value : null;
  return typeof value === 'string' ? parseMoment(value.trim()) : null;
}

function isDate(text: string): boolean {
  return !text.includes(':');
}

/** The value of a column of one contact. */
export type ValueOf = (column: string) => unknown;

export function matches(filter: CompiledFilter, valueOf: ValueOf): boolean {
  if ('all' in filter) return filter.all.every((inner) => matches(inner, valueOf));
  if ('any' in filter) return filter.any.some((inner) => matches(inner, valueOf));
  if ('not' in filter) return !matches(filter.not, valueOf);
  return filter.test(valueOf(filter.column));
}

/** Whether a contact matches a filter now. Reads what the filter needs, some 10 µs. `now`: epoch ms. */
export function matchesContact(
  tables: Tables,
  contact: KnownContact,
  filter: SegmentFilter,
  now: number,
): boolean {
  return matches(compileFilter(filter, now), contactValues(tables, contact));
}

/** Reads the values of one contact when they are asked for. */
export function contactValues(tables: Tables, contact: KnownContact): ValueOf {
  let custom: Record<string, unknown> | undefined;
  let engagement: ReturnType<Tables['engagement']['get']> | undefined;
  let memberships: ReturnType<Tables['subscriptions']['ofContact']> | undefined;
  const membershipsOf = () => (memberships ??= tables.subscriptions.ofContact(contact.seq));
  return (column) => {
    const colon = column.indexOf(':');
    const name = column.slice(colon + 1);
    switch (colon === -1 ? column : column.slice(0, colon)) {
      case 'field':
        return FIELDS[name]?.(contact);
      case 'custom':
        custom ??= customFieldsOf(contact);
        return Object.hasOwn(custom, name) ? custom[name] : null;
      case 'group':
        return groupValue(membershipsOf().find((one) => one.subscription_group_id === name));
      case 'joined':
        return lastJoined(membershipsOf());
      case 'campaign':
        return tables.engagement.ofCampaign(name, contact.seq);
      case 'unanswered':
        if (engagement === undefined) engagement = tables.engagement.get(contact.seq);
        return unansweredValue(engagement);
      default:
        if (engagement === undefined) engagement = tables.engagement.get(contact.seq);
        return engagement?.[ENGAGEMENT_COLUMNS[name] ?? 'received_at'];
    }
  };
}

export function customFieldsOf({
  custom_fields,
}: Pick<KnownContact, 'custom_fields'>): Record<string, unknown> {
  // Sound: custom fields are validated before they are stored.
  return JSON.parse(custom_fields) as Record<string, unknown>;
}

interface Joining {
  is_active: 0 | 1;
  joined_at: number;
}

/** The value of the column `joined`. */
export function lastJoined(memberships: readonly Joining[]): number | null {
  return memberships.reduce<number | null>(
    (last, one) => (one.is_active === 1 && one.joined_at > (last ?? 0) ? one.joined_at : last),
    null,
  );
}

/** The value of a column of a group. */
export function groupValue(membership: Joining | undefined): number | null {
  if (membership === undefined) return null;
  return membership.is_active === 1 ? membership.joined_at : -membership.joined_at;
}

/** Columns and those of `contact_engagement`. */
export const ENGAGEMENT_COLUMNS: Record<string, 'received_at' | 'opened_at' | 'clicked_at'> = {
  received: 'received_at',
  opened: 'opened_at',
  clicked: 'clicked_at',
};

/** The fields of a contact. */
export const FIELDS: Record<string, (contact: KnownContact) => string | number | null> = {
  email: ({ email }) => email,
  phone: ({ phone }) => phone,
  firstName: ({ first_name }) => first_name,
  lastName: ({ last_name }) => last_name,
  language: ({ language }) => language,
  source: ({ source }) => source,
  addedBy: ({ added_by }) => added_by,
  globalStatus: ({ global_status }) => global_status,
  consentMethod: ({ consent_method }) => consent_method,
  consentTimestamp: ({ consented_at }) => consented_at,
  createdAt: ({ created_at }) => created_at,
  updatedAt: ({ updated_at }) => updated_at,
};
