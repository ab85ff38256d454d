import { type Database, preparedByText } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { type BoundId, idNumbers, type StoredId } from '../rows/id-numbers.ts';
import { MAX_SCANNED_ROWS, type ScanPage, type SeqBounds, seqFinder } from '../rows/page.ts';
import { keyOfRecipient, STATUS_CODES, type StoredKey } from '../rows/row-keys.ts';
import { jobKey, MESSAGE_COLUMNS, messageRows, SHOWN_STATUSES, type ShownStatus } from './message-rows.ts';
import { LISTED_COLUMNS, type ListedMessage, type StoredListed, toListed } from './messages.ts';
import { IS_SCHEDULED_SQL } from './queue.ts';

/* Messages by any combination of filters, newest first. */

/** Selects messages: those that meet all conditions which are set. */
export interface MessageFilter {
  /** Null: of all accounts, for the operator. */
  accountId: string | null;
  recipientHash?: string;
  domainId?: string;
  campaignId?: string;
  jobId?: string;
  tag?: string;
  status?: ShownStatus;
  /** Only in `list`, instead of `status`: one of these. */
  statuses?: readonly ShownStatus[];
  /** Part of the recipient's address, of the From address or of the subject, in lower case; compared without case in ASCII. */
  recipientPart?: string;
  sender?: string;
  subject?: string;
  /** Accepted at or after `from` and before `to`, epoch ms. */
  from?: number;
  to?: number;
  /** Only messages with a lower number: the page key. */
  beforeSeq?: number;
  limit: number;
}

/** A page of messages. */
export interface MessagePage extends ScanPage<ListedMessage> {
  /**
   * When the page ended because it had examined the maximum number of rows: the time of acceptance of the last one, epoch ms.
   * All newer messages were examined by this page and those before it. Else null.
   */
  examinedSince: number | null;
}

/** How many messages have a status. */
export interface StatusCount {
  status: ShownStatus;
  count: number;
  /** Whether there may be more: not all were examined. */
  isLeast: boolean;
}

/** Messages for a lookup in another table. */
interface MessageSet {
  /** Null: there are too many. */
  seqs: number[] | null;
  /** When there are too many: none of them was accepted before this time; null: unknown. */
  since: number | null;
}

/**
 * A message gets its number when it is stored and its date when its request is checked. In between it may wait while other
 * requests are rendered. Dates are converted to numbers with this margin, and the messages are compared with the dates.
 */
export const DATE_MARGIN_MS = 30_000;

/** Of a filter by the status of queued messages: whether they are scheduled. */
type FilterName = Exclude<keyof MessageFilter, 'statuses' | 'beforeSeq' | 'limit'> | 'isScheduled';

const CONDITIONS: Record<FilterName, string> = {
  accountId: 'm.account = @accountId',
  recipientHash: 'm.recipient_key = @recipientHash',
  domainId: 'm.domain = @domainId',
  campaignId: 'm.campaign = @campaignId',
  jobId: 'm.job_key = @jobId',
  tag: 'EXISTS (SELECT 1 FROM message_tags t WHERE t.account = m.account AND t.tag = @tag AND t.message_seq = m.seq)',
  status: 'm.status_code = @status',
  isScheduled: `EXISTS (SELECT 1 FROM queue q WHERE q.seq = m.seq AND ${IS_SCHEDULED_SQL}) = @isScheduled`,
  recipientPart: 'instr(lower(m.recipient), @recipientPart) > 0',
  sender: 'instr(lower(m.from_address), @sender) > 0',
  subject: 'instr(lower(m.subject), @subject) > 0',
  from: 'm.created_at >= @from',
  to: 'm.created_at < @to',
};
const FILTER_NAMES = Object.keys(CONDITIONS) as FilterName[]; // the table has no other keys

/** An index and the filters that it answers. The statement names it: SQLite would guess which one is selective. */
interface Source {
  from: string;
  keys: readonly string[];
  answers: readonly FilterName[];
  /** The column with the number of the message, by which the index is ordered; default: that of `messages`. */
  seq?: string;
}

/** The condition that a message is in the range, and the order of a page. */
const inRange = ({ seq = 'm.seq' }: Source) => `${seq} < @beforeSeq AND ${seq} > @afterSeq`;
const newestFirst = ({ seq = 'm.seq' }: Source) => `ORDER BY ${seq} DESC`;

const EVERY_MESSAGE: Source = { from: 'messages m NOT INDEXED', keys: [], answers: [] };
const BY_ACCOUNT: Source = {
  from: 'messages m INDEXED BY messages_by_account',
  keys: [CONDITIONS.accountId],
  answers: ['accountId'],
};
const BY_RECIPIENT: Source = {
  from: 'messages m INDEXED BY messages_by_recipient',
  keys: [CONDITIONS.accountId, CONDITIONS.recipientHash],
  answers: ['accountId', 'recipientHash'],
};
const BY_TAG: Source = {
  from: 'message_tags t CROSS JOIN messages m ON m.seq = t.message_seq',
  keys: ['t.account = @accountId', 't.tag = @tag'],
  answers: ['accountId', 'tag'],
  seq: 't.message_seq',
};
/** The partial index omits delivered messages, nearly all; the statement must repeat its condition. */
const BY_STATUS: Source = {
  from: 'messages m INDEXED BY messages_by_status',
  keys: [CONDITIONS.accountId, CONDITIONS.status, `m.status_code <> ${STATUS_CODES.sql('delivered')}`],
  answers: ['accountId', 'status'],
};

/** Identifiers that belong to one account; the messages of each lie within a range of numbers. */
const GROUPS = {
  jobId: { column: 'job_key', index: 'messages_by_job' },
  campaignId: { column: 'campaign', index: 'messages_by_campaign' },
  domainId: { column: 'domain', index: 'messages_by_domain' },
} as const;
type GroupName = keyof typeof GROUPS;
const GROUP_NAMES = Object.keys(GROUPS) as GroupName[]; // the table has no other keys

/** Indexes that answer filters which are set, the most selective first as far as that can be known. */
function sourcesOf(filter: MessageFilter): [Source, ...Source[]] {
  const { accountId, recipientHash, tag, status } = filter;
  const sources: Source[] = [];
  if (accountId !== null && recipientHash !== undefined) sources.push(BY_RECIPIENT);
  if (accountId !== null && tag !== undefined) sources.push(BY_TAG);
  if (accountId !== null && status !== undefined && status !== 'delivered') sources.push(BY_STATUS);
  for (const name of GROUP_NAMES) {
    if (filter[name] === undefined) continue;
    sources.push({
      from: `messages m INDEXED BY ${GROUPS[name].index}`,
      keys: [CONDITIONS[name]],
      // `rangeOf` compares the account of a group.
      answers: ['accountId', name],
    });
  }
  const [first, ...others] = sources;
  return first === undefined ? [accountId === null ? EVERY_MESSAGE : BY_ACCOUNT] : [first, ...others];
}

/** The entries of an index in a range; a page may examine those after `end`. */
interface Scan {
  source: Source;
  range: SeqBounds;
  /** Conditions that the index does not answer. */
  rest: readonly string[];
  /** Null: a page may examine all of them. */
  end: number | null;
  values: StoredMessageFilter;
}

/** The values that CONDITIONS compare with columns. */
export interface StoredMessageFilter {
  accountId?: BoundId;
  recipientHash?: StoredKey;
  domainId?: BoundId;
  campaignId?: BoundId;
  jobId?: StoredKey;
  tag?: string;
  status?: number;
  isScheduled?: 0 | 1;
  recipientPart?: string;
  sender?: string;
  subject?: string;
  from?: number;
  to?: number;
}

type Parameters = StoredMessageFilter & SeqBounds & { limit?: number; maxScanned?: number };

/** `maxScanned`: rows that one page examines, at most. */
export function messageList(db: Database, maxScanned = MAX_SCANNED_ROWS) {
  const sql = statements(db);
  const firstSeqAt = seqFinder(db, { table: 'messages', time: 'created_at' });
  const endOf = ({ column, index }: (typeof GROUPS)[GroupName], order: 'ASC' | 'DESC') =>
    db.prepare<[BoundId | StoredKey], { seq: number; account: StoredId; created_at: number }>(`
      SELECT seq, account, created_at FROM messages INDEXED BY ${index}
      WHERE ${column} = ? ORDER BY seq ${order} LIMIT 1`);
  const groups = GROUP_NAMES.map((name) => ({
    name,
    oldest: endOf(GROUPS[name], 'ASC'),
    newest: endOf(GROUPS[name], 'DESC'),
  }));
  const { account, domain, campaign } = idNumbers(db);
  const { toRow } = messageRows(db);
  const acceptedFrom = sql.value<[number], number>(
    'SELECT created_at FROM messages WHERE seq >= ? ORDER BY seq LIMIT 1',
  );
  const listed = preparedByText<Parameters, StoredListed>(db);
  const numbered = preparedByText<Parameters, { seq: number }>(db);

  function stored(filter: MessageFilter): StoredMessageFilter {
    const { accountId, recipientHash, domainId, campaignId, jobId, status, from, to } = filter;
    const { tag, recipientPart, sender, subject } = filter;
    return {
      ...(accountId === null ? {} : { accountId: account.find(accountId) }),
      ...(recipientHash === undefined ? {} : { recipientHash: keyOfRecipient(recipientHash) }),
      ...(domainId === undefined ? {} : { domainId: domain.find(domainId) }),
      ...(campaignId === undefined ? {} : { campaignId: campaign.find(campaignId) }),
      ...(jobId === undefined ? {} : { jobId: jobKey(jobId) }),
      ...(tag === undefined ? {} : { tag }),
      ...storedStatus(status),
      ...(recipientPart === undefined ? {} : { recipientPart }),
      ...(sender === undefined ? {} : { sender }),
      ...(subject === undefined ? {} : { subject }),
      ...(from === undefined ? {} : { from }),
      ...(to === undefined ? {} : { to }),
    };
  }

  /** Null: no message matches. */
  function rangeOf(filter: MessageFilter, values: StoredMessageFilter): SeqBounds | null {
    let afterSeq = 0;
    let beforeSeq = filter.beforeSeq ?? Number.MAX_SAFE_INTEGER;
    if (filter.from !== undefined) afterSeq = firstSeqAt(filter.from - DATE_MARGIN_MS) - 1;
    if (filter.to !== undefined) beforeSeq = Math.min(beforeSeq, firstSeqAt(filter.to + DATE_MARGIN_MS));
    for (const { name, oldest, newest } of groups) {
      const id = values[name];
      if (id === undefined) continue;
      const [first, last] = [oldest.get(id), newest.get(id)];
      if (first === undefined || last === undefined) return null;
      if (filter.accountId !== null && account.id(last.account) !== filter.accountId) return null;
      afterSeq = Math.max(afterSeq, first.seq - 1);
      beforeSeq = Math.min(beforeSeq, last.seq + 1);
    }
    return { afterSeq, beforeSeq };
  }

  /** Chooses the first of several indexes whose entries a page can examine completely. Null: no message matches. */
  function scanOf(filter: MessageFilter): Scan | null {
    const values = stored(filter);
    const range = rangeOf(filter, values);
    if (range === null) return null;
    const [first, ...others] = sourcesOf(filter);
    const preferred = scanBy(first, { values, range });
    if (preferred.end === null) return preferred;
    for (const source of others) {
      const scan = scanBy(source, { values, range });
      if (scan.end === null) return scan;
    }
    return preferred;
  }

  function scanBy(
    source: Source,
    { values, range }: { values: StoredMessageFilter; range: SeqBounds },
  ): Scan {
    const rest = FILTER_NAMES.filter(
      (name) => values[name] !== undefined && !source.answers.includes(name),
    ).map((name) => CONDITIONS[name]);
    // Without further conditions the limit of the page bounds the scan.
    if (rest.length === 0) return { source, range, rest, end: null, values };
    const end = numbered(`
      SELECT m.seq FROM ${source.from} WHERE ${[...source.keys, inRange(source)].join(' AND ')}
      ${newestFirst(source)} LIMIT 1 OFFSET +@maxScanned`).get({ ...values, ...range, maxScanned });
    return { source, range, rest, end: end?.seq ?? null, values };
  }

  function whereOf({ source, rest }: Scan): string {
    return [...source.keys, inRange(source), ...rest].join(' AND ');
  }

  function listOf(filter: MessageFilter): MessagePage {
    const scan = scanOf(filter);
    if (scan === null) return { rows: [], nextSeq: null, examinedSince: null };
    const { range, end, values } = scan;
    const rows = listed(`
      SELECT ${MESSAGE_COLUMNS}, ${LISTED_COLUMNS} FROM ${scan.source.from} LEFT JOIN queue q USING (seq)
      WHERE ${whereOf(scan)} ${newestFirst(scan.source)} LIMIT +@limit`)
      .raw()
      .all({ ...values, ...range, afterSeq: end ?? range.afterSeq, limit: filter.limit + 1 })
      .map((stored) => toListed(toRow(stored), stored));
    const last = rows[filter.limit - 1];
    if (rows.length > filter.limit && last !== undefined)
      return { rows: rows.slice(0, filter.limit), nextSeq: last.seq, examinedSince: null };
    if (end === null) return { rows, nextSeq: null, examinedSince: null };
    return { rows, nextSeq: end + 1, examinedSince: acceptedFrom(end + 1) };
  }

  /** How many messages of a status match, among those that a page can examine. */
  function countOf(filter: Omit<MessageFilter, 'limit'>, status: ShownStatus): StatusCount {
    const scan = scanOf({ ...filter, status, limit: maxScanned });
    if (scan === null) return { status, count: 0, isLeast: false };
    const rows = numbered(`
      SELECT m.seq FROM ${scan.source.from} WHERE ${whereOf(scan)} ${newestFirst(scan.source)} LIMIT +@limit`).all(
      {
        ...scan.values,
        ...scan.range,
        afterSeq: scan.end ?? scan.range.afterSeq,
        limit: maxScanned + 1,
      },
    );
    return {
      status,
      count: Math.min(rows.length, maxScanned),
      isLeast: scan.end !== null || rows.length > maxScanned,
    };
  }

  return {
    /** Newest first. The statement is composed of the filters that are set; values are always bound. */
    list: ({ statuses, ...filter }: MessageFilter): MessagePage =>
      statuses === undefined
        ? listOf(filter)
        : joinedPage(
            [...new Set(statuses)].map((status) => listOf({ ...filter, status })),
            filter.limit,
          ),
    /** How many messages of each status match the other conditions of a filter. */
    statusCounts: (filter: Omit<MessageFilter, 'status' | 'statuses' | 'limit'>): StatusCount[] =>
      SHOWN_STATUSES.map((status) => countOf(filter, status)),
    /** The messages that match, if they are at most `max` and a page can examine all candidates. */
    setOf: (filter: Omit<MessageFilter, 'limit'>, max: number): MessageSet => {
      const scan = scanOf({ ...filter, limit: max });
      if (scan === null) return { seqs: [], since: null };
      const rows =
        scan.end === null
          ? numbered(`
              SELECT m.seq FROM ${scan.source.from} WHERE ${whereOf(scan)}
              ${newestFirst(scan.source)} LIMIT +@limit`).all({
              ...scan.values,
              ...scan.range,
              limit: max + 1,
            })
          : null;
      return rows === null || rows.length > max
        ? { seqs: null, since: oldestOf(filter) }
        : { seqs: rows.map(({ seq }) => seq), since: null };
    },
  };

  /** A time before which no message of the groups in the filter was accepted; null: unknown. */
  function oldestOf(filter: Omit<MessageFilter, 'limit'>): number | null {
    const values = stored({ ...filter, limit: 1 });
    const times = groups.map(({ name, oldest }) => {
      const id = values[name];
      return id === undefined ? null : (oldest.get(id)?.created_at ?? null);
    });
    const known = times.filter((time) => time !== null);
    return known.length === 0 ? null : Math.max(...known) - DATE_MARGIN_MS;
  }
}

/** A scheduled message is stored as queued. */
function storedStatus(status: ShownStatus | undefined): Pick<StoredMessageFilter, 'status' | 'isScheduled'> {
  if (status === undefined) return {};
  if (status === 'scheduled') return { status: STATUS_CODES.code('queued'), isScheduled: 1 };
  return { status: STATUS_CODES.code(status), ...(status === 'queued' ? { isScheduled: 0 } : {}) };
}

/** Joins pages that have no message in common; each examined all messages from its `nextSeq` on. */
function joinedPage(pages: readonly MessagePage[], limit: number): MessagePage {
  // Below the highest of these numbers, a page did not examine everything.
  const shortest = pages.reduce<MessagePage | null>(
    (found, page) => (page.nextSeq !== null && (found?.nextSeq ?? 0) < page.nextSeq ? page : found),
    null,
  );
  const nextSeq = shortest?.nextSeq ?? null;
  const rows = pages
    .flatMap((page) => page.rows)
    .filter(({ seq }) => nextSeq === null || seq >= nextSeq)
    .sort((a, b) => b.seq - a.seq);
  const last = rows[limit - 1];
  if (rows.length > limit && last !== undefined)
    return { rows: rows.slice(0, limit), nextSeq: last.seq, examinedSince: null };
  return { rows, nextSeq, examinedSince: shortest?.examinedSince ?? null };
}
