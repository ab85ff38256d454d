import { type Database, preparedByText } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { type BoundId, idNumbers } from '../rows/id-numbers.ts';
import { EMPTY_PAGE, MAX_SCANNED_ROWS, type ScanPage, type SeqBounds, seqFinder } from '../rows/page.ts';
import { codeOfKind, keyOfRecipient, STATUS_CODES, type StoredKey } from '../rows/row-keys.ts';
import { eventRows, type StoredEvent } from './event-rows.ts';
import { type EventRow, selectEvent } from './events.ts';
import { type MessageFilter, messageList } from './message-list.ts';
import { jobKey, type MessageStatus, messageKey } from './message-rows.ts';

/* Events of an account by any combination of filters, oldest first. */

/** Selects events: those that meet all conditions which are set. */
export interface EventFilter
  extends Pick<
    MessageFilter,
    'recipientHash' | 'domainId' | 'campaignId' | 'jobId' | 'tag' | 'from' | 'to' | 'limit'
  > {
  status?: MessageStatus;
  accountId: string;
  /** Only events after this one: the page key. */
  afterSeq: number;
  kind?: string;
  messageId?: string;
}

/** Maximum number of messages whose events are looked up one by one; with more, the feed is read instead. */
export const MAX_MESSAGES = 2000;

type FilterName = Exclude<keyof EventFilter, 'accountId' | 'messageId' | 'afterSeq' | 'limit'>;

/** An event without a message has the recipient and the campaign in its JSON data; it has no job and no status. */
const CONDITIONS: Record<FilterName, string> = {
  recipientHash:
    "iif(e.message_seq IS NULL, e.data ->> '$.contactIdentifier' = @recipientHash, m.recipient_key = @recipientKey)",
  domainId: 'coalesce(m.domain, e.domain) = @domainId',
  campaignId:
    "iif(e.message_seq IS NULL, e.data ->> '$.campaignId' = @campaignId, m.campaign = @campaignNumber)",
  jobId: 'm.job_key = @jobId',
  tag: "EXISTS (SELECT 1 FROM json_each(iif(e.message_seq IS NULL, e.data, m.labels), '$.tags') WHERE value = @tag)",
  status: 'm.status_code = @status',
  kind: 'e.kind_code = @kind',
  from: 'e.at >= @from',
  to: 'e.at < @to',
};
const FILTER_NAMES = Object.keys(CONDITIONS) as FilterName[]; // the table has no other keys
const IN_RANGE = 'e.seq > @afterSeq AND e.seq < @beforeSeq';

/** An index, its conditions, and the filters that they answer. */
interface Source {
  from: string;
  keys: readonly string[];
  answers: readonly FilterName[];
}

const BY_ACCOUNT: Source = {
  from: 'events e INDEXED BY events_by_account',
  keys: ['e.account = @accountId'],
  answers: [],
};
/** Kinds that nearly every message has. Most of the feed consists of them, so an index of them would be as large. */
const COMMON_KINDS = ['email_sent', 'email_delivered'];
const BY_KIND: Source = {
  from: 'events e INDEXED BY events_by_kind',
  keys: [
    'e.account = @accountId',
    CONDITIONS.kind,
    ...COMMON_KINDS.map((kind) => `e.kind_code <> ${codeOfKind(kind)}`),
  ],
  answers: ['kind'],
};
const BY_MESSAGE: Source = {
  from: 'events e INDEXED BY events_by_message',
  keys: ['e.message_seq = @messageSeq'],
  answers: [],
};
const WITHOUT_MESSAGE: Source = {
  from: 'events e INDEXED BY events_without_message',
  keys: ['e.account = @accountId', 'e.message_seq IS NULL'],
  answers: [],
};
const BY_PERSON: Source = {
  from: 'events e INDEXED BY events_by_person',
  keys: [
    'e.account = @accountId',
    'e.message_seq IS NULL',
    "e.data ->> '$.contactIdentifier' = @recipientHash",
  ],
  answers: ['recipientHash'],
};

/** The values that CONDITIONS compare with columns. */
interface StoredEventFilter {
  accountId: BoundId;
  recipientHash?: string;
  recipientKey?: StoredKey;
  domainId?: BoundId;
  campaignId?: string;
  campaignNumber?: BoundId;
  jobId?: StoredKey;
  tag?: string;
  status?: number;
  kind?: bigint | string;
  from?: number;
  to?: number;
}

type Parameters = StoredEventFilter &
  SeqBounds & { maxScanned: number; messageSeq: number | null; limit: number };

/** Matching events in order, complete up to the number `upTo`; null: complete. */
interface Part {
  rows: EventRow[];
  upTo: number | null;
}

/** `maxScanned`: events that one part of a page examines, at most; `maxMessages`: see MAX_MESSAGES. */
export function eventFeed(db: Database, maxScanned = MAX_SCANNED_ROWS, maxMessages = MAX_MESSAGES) {
  const sql = statements(db);
  const messages = messageList(db, maxScanned);
  const firstSeqAt = seqFinder(db, { table: 'events', time: 'at' });
  const bySeq = db.prepare<[number], StoredEvent>(`${selectEvent('events e')} WHERE e.seq = ?`);
  const messageOfAccount = db
    .prepare<[StoredKey, BoundId], number>('SELECT seq FROM messages WHERE message_key = ? AND +account = ?')
    .pluck();
  const seqsOfMessage = sql.values<[number, number, number, number], number>(`
    SELECT seq FROM events INDEXED BY events_by_message
    WHERE message_seq = ? AND seq > ? AND seq < ? ORDER BY seq LIMIT +?`);
  const { account, domain, campaign } = idNumbers(db);
  const { toRow } = eventRows(db);
  const found = preparedByText<Parameters, StoredEvent>(db);
  const numbered = preparedByText<Parameters, { seq: number }>(db);

  function stored(filter: EventFilter): StoredEventFilter {
    const { accountId, recipientHash, domainId, campaignId, jobId, tag, status, kind, from, to } = filter;
    return {
      accountId: account.find(accountId),
      ...(recipientHash === undefined ? {} : { recipientHash, recipientKey: keyOfRecipient(recipientHash) }),
      ...(domainId === undefined ? {} : { domainId: domain.find(domainId) }),
      ...(campaignId === undefined ? {} : { campaignId, campaignNumber: campaign.find(campaignId) }),
      ...(jobId === undefined ? {} : { jobId: jobKey(jobId) }),
      ...(tag === undefined ? {} : { tag }),
      ...(status === undefined ? {} : { status: STATUS_CODES.code(status) }),
      ...(kind === undefined ? {} : { kind: codeOfKind(kind) }),
      ...(from === undefined ? {} : { from }),
      ...(to === undefined ? {} : { to }),
    };
  }

  /** Reads one index; `messageSeq`: for BY_MESSAGE. */
  function scan(
    source: Source,
    filter: EventFilter,
    range: SeqBounds,
    messageSeq: number | null = null,
  ): Part {
    const rest = FILTER_NAMES.filter((name) => filter[name] !== undefined && !source.answers.includes(name));
    const parameters = { ...stored(filter), ...range, maxScanned, messageSeq, limit: filter.limit + 1 };
    // Without further conditions the limit of the page bounds it.
    const end =
      rest.length === 0
        ? undefined
        : numbered(`
            SELECT e.seq FROM ${source.from} WHERE ${[...source.keys, IN_RANGE].join(' AND ')}
            ORDER BY e.seq LIMIT 1 OFFSET +@maxScanned`).get(parameters)?.seq;
    const join = rest.includes('jobId') || rest.includes('status') ? 'CROSS JOIN' : 'LEFT JOIN';
    const conditions = [...source.keys, IN_RANGE, ...rest.map((name) => CONDITIONS[name])];
    const rows = found(`
      ${selectEvent(source.from, join)} WHERE ${conditions.join(' AND ')}
      ORDER BY e.seq LIMIT +@limit`)
      .all({ ...parameters, beforeSeq: end ?? range.beforeSeq })
      .map(toRow);
    if (rows.length > filter.limit) return { rows, upTo: rows.at(-1)?.seq ?? null };
    return { rows, upTo: end === undefined ? null : end - 1 };
  }

  /** Events of these messages. */
  function ofMessages(seqs: readonly number[], filter: EventFilter, range: SeqBounds): Part {
    let upTo = Number.POSITIVE_INFINITY;
    const candidates: number[] = [];
    for (const seq of seqs) {
      const events = seqsOfMessage(seq, range.afterSeq, range.beforeSeq, filter.limit + 1);
      candidates.push(...events);
      if (events.length > filter.limit) upTo = Math.min(upTo, events.at(-1) ?? upTo);
    }
    candidates.sort((one, two) => one - two);
    upTo = Math.min(upTo, candidates[maxScanned - 1] ?? upTo);
    const rows: EventRow[] = [];
    for (const seq of candidates) {
      if (seq > upTo) break;
      if (rows.length > filter.limit) return { rows, upTo: rows.at(-1)?.seq ?? null };
      const found = bySeq.get(seq);
      const row = found === undefined ? null : toRow(found);
      if (row !== null && isWanted(row, filter)) rows.push(row);
    }
    return { rows, upTo: Number.isFinite(upTo) ? upTo : null };
  }

  /** Reads by message for one or a few messages, otherwise by kind or the whole feed. */
  function partsOf(filter: EventFilter, range: SeqBounds): Part[] {
    const { accountId, messageId, recipientHash, domainId, campaignId, jobId, tag, status } = filter;
    if (messageId !== undefined) {
      const seq = messageOfAccount.get(messageKey(messageId), account.find(accountId));
      return seq === undefined ? [] : [scan(BY_MESSAGE, filter, range, seq)];
    }
    const groups = { recipientHash, domainId, campaignId, jobId, tag, status };
    const given = Object.fromEntries(Object.entries(groups).filter(([, value]) => value !== undefined));
    if (Object.keys(given).length === 0) return [scan(walkOf(filter), filter, range)];
    const { seqs, since } = messages.setOf({ accountId, ...given }, maxMessages);
    // An event without a message has no job and no status.
    const others =
      jobId !== undefined || status !== undefined
        ? null
        : recipientHash === undefined
          ? WITHOUT_MESSAGE
          : BY_PERSON;
    if (seqs !== null) {
      const parts = [ofMessages(seqs, filter, range)];
      if (others !== null) parts.push(scan(others, filter, range));
      return parts;
    }
    // Before the first of the messages there can only be events without a message.
    const afterSeq = since === null ? range.afterSeq : Math.max(range.afterSeq, firstSeqAt(since) - 1);
    const parts = [scan(walkOf(filter), filter, { ...range, afterSeq })];
    if (others !== null && afterSeq > range.afterSeq)
      parts.push(
        scan(others, filter, {
          afterSeq: range.afterSeq,
          beforeSeq: Math.min(afterSeq + 1, range.beforeSeq),
        }),
      );
    return parts;
  }

  return {
    /** The number of the first event at or after a time; after the last event, the next number. */
    firstSeqAt,
    /**
     * A page of events, oldest first. A consumer that continues with `nextSeq` misses no event. It is null only when the
     * range has no further event and the page is empty.
     */
    feed: (filter: EventFilter): ScanPage<EventRow> => {
      const { from, to, limit } = filter;
      const range = {
        afterSeq: Math.max(filter.afterSeq, from === undefined ? 0 : firstSeqAt(from) - 1),
        beforeSeq: to === undefined ? Number.MAX_SAFE_INTEGER : firstSeqAt(to),
      };
      const parts = partsOf(filter, range);
      if (parts.length === 0) return EMPTY_PAGE;
      const upTo = Math.min(...parts.map((part) => part.upTo ?? Number.POSITIVE_INFINITY));
      const rows = parts
        .flatMap((part) => part.rows)
        .filter(({ seq }) => seq <= upTo)
        .toSorted((one, two) => one.seq - two.seq);
      const page = rows.slice(0, limit);
      if (rows.length > limit || !Number.isFinite(upTo))
        return { rows: page, nextSeq: page.at(-1)?.seq ?? null };
      return { rows: page, nextSeq: upTo };
    },
  };
}

/** The index to read when the messages of the filter are not looked up. */
function walkOf({ kind }: EventFilter): Source {
  return kind === undefined || COMMON_KINDS.includes(kind) ? BY_ACCOUNT : BY_KIND;
}

function isWanted(row: EventRow, { kind, from, to }: EventFilter): boolean {
  return (
    (kind === undefined || row.kind === kind) &&
    (from === undefined || row.at >= from) &&
    (to === undefined || row.at < to)
  );
}
