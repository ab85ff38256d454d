import { LRUCache } from 'lru-cache';
import { SECOND } from '../../core/clock.ts';
import { accountLimitReached, invalid, isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import type { KnownContact } from '../../store/contacts/contacts.ts';
import type { SegmentRow } from '../../store/contacts/segments.ts';
import type { Context } from '../../store/context.ts';
import { ReadRejected } from '../../store/database/failure.ts';
import type { NamedPageFilter, Page } from '../../store/rows/page.ts';
import type { Tables } from '../../store/tables.ts';
import {
  countSelected,
  NOTHING_EXCLUDED,
  type SegmentPage,
  type Selection,
  segmentContacts,
} from './evaluate.ts';
import { childrenOf, ENGAGEMENTS, type SegmentFilter } from './filter.ts';

/* Segments: saved filters over the contacts of an account. Who is in a segment is found when it is used. */

export interface SegmentFields {
  name: string;
  filter: SegmentFilter;
}

/** A segment with the number of its contacts; null: it is not counted. */
export interface CountedSegment {
  segment: SegmentRow;
  count: number | null;
}

export const MAX_SEGMENTS = 500;
/** How long a list shows a count again, ms. A single segment is counted at each request. */
const COUNT_AGE_MS = 60 * SECOND;
const MAX_COUNTS = 10_000;
/** How long a list counts segments, ms; the others are not counted. */
const LIST_COUNTING_MS = 2 * SECOND;

/** Keeps counts for lists in memory. Counts and lists of contacts run through `reader`. */
export function createSegments({
  tables,
  reader,
  writer,
  clock,
  ids,
}: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock' | 'ids'>) {
  const counts = new LRUCache<string, { filter: string; count: number | null; at: number }>({
    max: MAX_COUNTS,
  });

  const selection = (accountId: string, filter: string): Selection => ({
    accountId,
    ...NOTHING_EXCLUDED,
    filters: [filter],
    now: clock.now(),
  });

  function knownCount({ segment_id: id, filter }: SegmentRow): { count: number | null } | null {
    const known = counts.get(id);
    return known?.filter === filter && clock.now() - known.at < COUNT_AGE_MS ? known : null;
  }

  async function counted(segment: SegmentRow): Promise<CountedSegment> {
    const { segment_id: id, account_id: accountId, filter } = segment;
    const at = clock.now();
    const store = (count: number | null) => {
      counts.set(id, { filter, count, at });
      return { segment, count };
    };
    try {
      const { count } = await reader.query(accountId, countSelected, selection(accountId, filter), 0);
      return store(count);
    } catch (error) {
      if (error instanceof ReadRejected && error.reason === 'too-broad') store(null);
      throw error;
    }
  }

  /** With the count null where it takes too long, or where a reader is not available. */
  async function countedIfPossible(segment: SegmentRow): Promise<CountedSegment> {
    try {
      return await counted(segment);
    } catch (error) {
      if (error instanceof ReadRejected) return { segment, count: null };
      throw error;
    }
  }

  return {
    /** Newest first. Counts may be a minute old; with `isCounted`, as many are counted as the time allows. */
    list: async (
      filter: NamedPageFilter,
      isCounted: boolean,
    ): Promise<{ rows: CountedSegment[]; more: boolean }> => {
      const page: Page<SegmentRow> = await reader.table(filter.accountId, 'segments', 'list', filter);
      const end = clock.now() + LIST_COUNTING_MS;
      const rows: CountedSegment[] = [];
      for (const segment of page.rows) {
        const known = knownCount(segment);
        if (known !== null || !isCounted || clock.now() >= end)
          rows.push({ segment, count: known?.count ?? null });
        else rows.push(await countedIfPossible(segment));
      }
      return { rows, more: page.more };
    },
    get: async (accountId: string, segmentId: string): Promise<CountedSegment | Refusal> => {
      const segment = findSegment(tables, accountId, segmentId);
      return isRefusal(segment) ? segment : counted(segment);
    },
    create: async (accountId: string, fields: SegmentFields): Promise<CountedSegment | Refusal> => {
      const created = await writer.run((tx): SegmentRow | Refusal => {
        if (tx.segments.count(accountId) >= MAX_SEGMENTS)
          return accountLimitReached('segments', MAX_SEGMENTS);
        const refusal = fieldsRefusal(tx, accountId, fields, null);
        if (refusal !== null) return refusal;
        const now = clock.now();
        const row = {
          segment_id: ids.make('segment'),
          account_id: accountId,
          name: fields.name,
          filter: JSON.stringify(fields.filter),
          created_at: now,
          updated_at: now,
        };
        return { ...row, seq: tx.segments.insert(row) };
      }, accountId);
      return isRefusal(created) ? created : countedIfPossible(created);
    },
    /** Changes the fields that are present; a campaign that is being sent continues with the new filter. */
    update: async (
      accountId: string,
      segmentId: string,
      fields: Partial<SegmentFields>,
    ): Promise<CountedSegment | Refusal> => {
      const updated = await writer.run((tx): SegmentRow | Refusal => {
        const segment = findSegment(tx, accountId, segmentId);
        if (isRefusal(segment)) return segment;
        const refusal = fieldsRefusal(tx, accountId, fields, segmentId);
        if (refusal !== null) return refusal;
        const changed = {
          ...segment,
          name: fields.name ?? segment.name,
          filter: fields.filter === undefined ? segment.filter : JSON.stringify(fields.filter),
          updated_at: clock.now(),
        };
        tx.segments.update(changed);
        return changed;
      }, accountId);
      return isRefusal(updated) ? updated : countedIfPossible(updated);
    },
    /** Refused while a campaign uses it that is not completely sent. */
    remove: (accountId: string, segmentId: string): Promise<SegmentRow | Refusal> =>
      writer.run((tx): SegmentRow | Refusal => {
        const segment = findSegment(tx, accountId, segmentId);
        if (isRefusal(segment)) return segment;
        const users = tx.campaignSends.usersOfSegment(accountId, segmentId);
        if (users.length > 0) {
          const names = users.map(({ name, campaign_id: id }) => `${name} (${id})`).join(', ');
          return refuse(
            'INVALID_STATE',
            `The segment ${segment.name} is used by campaigns that are not sent yet: ${names}. Cancel them first.`,
            {
              details: users.map(({ name, campaign_id: id }) => ({
                field: 'segmentId',
                name,
                message: `is used by campaign ${id}`,
              })),
            },
          );
        }
        tx.segments.remove(segment.seq);
        return segment;
      }, accountId),
    /** Counts the contacts that match a filter, and returns the newest ones. */
    preview: async (
      accountId: string,
      filter: SegmentFilter,
      newest: number,
    ): Promise<{ count: number; newest: KnownContact[] } | Refusal> =>
      referencesRefusal(tables, accountId, filter, 'filter') ??
      reader.query(accountId, countSelected, selection(accountId, JSON.stringify(filter)), newest),
    /** A page of the contacts of a segment, newest first. */
    contacts: async (accountId: string, page: SegmentPage): Promise<Page<KnownContact> | Refusal> =>
      (await reader.query(accountId, segmentContacts, accountId, page, clock.now())) ??
      noSegment(page.segmentId),
  };
}

export type Segments = ReturnType<typeof createSegments>;

/** Returns the same refusal for an unknown segment and for one of another account. */
export function findSegment(tables: Tables, accountId: string, segmentId: string): SegmentRow | Refusal {
  return tables.segments.get(accountId, segmentId) ?? noSegment(segmentId);
}

function noSegment(segmentId: string): Refusal {
  return refuse('SEGMENT_NOT_FOUND', `There is no segment ${segmentId}`);
}

/** The segment as the API returns it. */
export function segmentFilterOf({ filter }: Pick<SegmentRow, 'filter'>): SegmentFilter {
  // Sound: only this module and the import of accounts, which checks it, write the column.
  return JSON.parse(filter) as SegmentFilter;
}

/** `own`: the segment that is updated. */
function fieldsRefusal(
  tables: Tables,
  accountId: string,
  { name, filter }: Partial<SegmentFields>,
  own: string | null,
): Refusal | null {
  const same = name === undefined ? null : tables.segments.byName(accountId, name);
  if (same !== null && same.segment_id !== own)
    return invalid('name', `is the name of another segment (${same.segment_id})`);
  return filter === undefined ? null : referencesRefusal(tables, accountId, filter, 'filter');
}

/** Refuses a filter with a group or a campaign that the account does not have. `path`: of the filter. */
export function referencesRefusal(
  tables: Tables,
  accountId: string,
  filter: SegmentFilter,
  path: string,
): Refusal | null {
  const inner = childrenOf(filter);
  if (inner !== null) {
    const name = filter.all !== undefined ? 'all' : filter.any !== undefined ? 'any' : null;
    for (const [index, child] of inner.entries()) {
      const childPath = name === null ? `${path}.not` : `${path}.${name}[${index}]`;
      const refusal = referencesRefusal(tables, accountId, child, childPath);
      if (refusal !== null) return refusal;
    }
    return null;
  }
  const groupId = filter.group ?? filter.joined?.group;
  if (groupId !== undefined && tables.subscriptionGroups.get(accountId, groupId) === null)
    return invalid(
      filter.group === undefined ? `${path}.joined.group` : `${path}.group`,
      `is not a subscription group of the account: ${groupId}`,
    );
  for (const kind of ENGAGEMENTS) {
    const campaignId = filter[kind]?.campaignId;
    if (campaignId !== undefined && tables.campaigns.get(accountId, campaignId) === null)
      return invalid(`${path}.${kind}.campaignId`, `is not a campaign of the account: ${campaignId}`);
  }
  return null;
}
