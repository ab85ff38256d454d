import { describe, expect, it } from 'vitest';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { type EventFilter, eventFeed } from '../../src/store/messages/event-feed.ts';
import type { EventRow } from '../../src/store/messages/events.ts';
import { type MessageFilter, messageList } from '../../src/store/messages/message-list.ts';
import type { MessageRow, MessageStatus } from '../../src/store/messages/messages.ts';
import type { ScanPage } from '../../src/store/rows/page.ts';
import { combinations } from '../support/combinations.ts';
import { enqueue, heldClock, insertAccount, startStore } from '../support/store.ts';

/* Lists whose pages examine a limited number of rows: all pages together have the matching rows, in order. */
const MINUTE = 60_000;
const MAX_SCANNED = 7;
const LIMIT = 4;
const STATUSES = ['delivered', 'delivered', 'bounced', 'delivered', 'queued', 'failed'] as const;
const SEVERAL_STATUSES: MessageStatus[][] = [
  ['bounced'],
  ['bounced', 'delivered', 'bounced'],
  ['failed', 'queued'],
];
const PEOPLE = ['ada@example.net', 'bob@example.net', 'cyd@example.net'] as const;
const KINDS = ['email_sent', 'email_delivered', 'email_opened', 'email_bounced'] as const;

function seeded(count = 60) {
  const store = startStore(heldClock());
  const { tables, clock } = store;
  insertAccount(tables, 'acct_two', clock.now());
  const start = clock.now();
  const messages: MessageRow[] = [];
  const event = (n: number, values: Partial<EventRow>) =>
    tables.events.insert({
      event_id: `evt_${n}`,
      account_id: 'acct_one',
      kind: 'email_sent',
      at: clock.now(),
      message_seq: null,
      domain_id: null,
      data: '{}',
      ...values,
    });
  for (let n = 0; n < count; n++) {
    const account = n % 7 === 6 ? 'acct_two' : 'acct_one';
    const row = enqueue(tables, clock.now(), {
      account_id: account,
      // Identifiers belong to one account.
      domain_id: `domain_${account}_${n % 2}`,
      campaign_id: n % 4 === 0 ? `campaign_${account}` : null,
      job_id: n % 3 === 0 ? `job_${account}` : null,
      recipient: PEOPLE[n % 5] ?? PEOPLE[0],
      labels: n % 5 === 0 ? '{"tags":["gold","red"]}' : null,
      from_address: n % 8 === 0 ? 'Billing@example.com' : 'shop@example.com',
      // As when requests wait for each other: dates are not in the order of the numbers.
      created_at: clock.now() - (n % 3) * 10_000,
    });
    const status: MessageStatus = STATUSES[n % STATUSES.length] ?? 'queued';
    tables.messages.setState(row.seq, status, clock.now(), null, null);
    messages.push({ ...row, status });
    event(3 * n, { account_id: account, message_seq: row.seq });
    const earlier = messages[Math.floor(n / 2)];
    event(3 * n + 1, {
      account_id: earlier?.account_id ?? '',
      message_seq: earlier?.seq ?? null,
      kind: KINDS[n % KINDS.length] ?? 'email_sent',
    });
    if (n % 6 === 0)
      event(3 * n + 2, {
        kind: 'email_suppressed',
        domain_id: 'domain_acct_one_1',
        data: JSON.stringify({
          contactIdentifier: emailIdentifier(PEOPLE[n % 3] ?? ''),
          campaignId: n % 4 === 0 ? 'campaign_acct_one' : undefined,
          tags: n % 12 === 0 ? ['gold'] : undefined,
        }),
      });
    clock.advance(MINUTE);
  }
  const period = { from: start + 10 * MINUTE, to: start + 45 * MINUTE };
  return { ...store, messages, period };
}

/** The rows of all pages. */
function allPages<Row>(page: (seq: number | null) => ScanPage<Row>): { rows: Row[] } {
  const rows: Row[] = [];
  let next: number | null = null;
  for (let pages = 1; ; pages++) {
    const found: ScanPage<Row> = page(next);
    rows.push(...found.rows);
    // Not `expect`, which would take longer than reading the pages.
    if (found.rows.length > LIMIT) throw new Error(`a page has ${found.rows.length} rows`);
    // A feed returns a `nextSeq` with every page that has rows.
    if (found.nextSeq === null || pages > 200) return { rows };
    if (found.nextSeq === next) throw new Error(`the next page begins at ${next} again`);
    next = found.nextSeq;
  }
}

/** `json`: with the field `tags`; null: there are none. */
function hasTag(json: string | null, tag: string | undefined): boolean {
  const { tags = [] }: { tags?: string[] } = JSON.parse(json ?? '{}');
  return tag === undefined || tags.includes(tag);
}

type Numbered = Pick<MessageRow | EventRow, 'seq'>;

function expectRows(found: readonly Numbered[], expected: readonly Numbered[], filter: object): void {
  const numbers = (rows: readonly Numbered[]) => rows.map(({ seq }) => seq);
  // `expect` is called for a difference only: there are thousands of filters.
  if (numbers(found).join() !== numbers(expected).join())
    expect(numbers(found), JSON.stringify(filter)).toEqual(numbers(expected));
}

describe('messages', () => {
  it('are found by every combination of filters', () => {
    const { db, messages, period } = seeded();
    const { list } = messageList(db, MAX_SCANNED);
    const filters = combinations<
      Omit<MessageFilter, 'limit' | 'beforeSeq' | 'accountId' | 'subject' | 'statuses'>
    >({
      recipientHash: [emailIdentifier(PEOPLE[0])],
      domainId: ['domain_acct_one_0'],
      campaignId: ['campaign_acct_one'],
      jobId: ['job_acct_one'],
      tag: ['gold'],
      status: ['bounced', 'delivered'],
      recipientPart: [PEOPLE[0].slice(1, 6)],
      sender: ['billing'],
      from: [period.from],
      to: [period.to],
    });
    for (const accountId of ['acct_one', 'acct_two', null])
      for (const filter of filters) {
        const found = allPages((seq) =>
          list({ accountId, ...filter, ...(seq === null ? {} : { beforeSeq: seq }), limit: LIMIT }),
        );
        const expected = messages.filter((row) => isWanted(row, accountId, filter)).toReversed();
        expectRows(found.rows, expected, { accountId, ...filter });
      }
  });

  function isWanted(
    row: MessageRow,
    accountId: string | null,
    filter: Omit<MessageFilter, 'limit' | 'accountId'>,
  ): boolean {
    const fits = <T>(wanted: T | undefined, value: T) => wanted === undefined || wanted === value;
    return (
      (accountId === null || row.account_id === accountId) &&
      fits(filter.recipientHash, row.recipient_hash) &&
      fits(filter.domainId, row.domain_id) &&
      fits(filter.campaignId, row.campaign_id) &&
      fits(filter.jobId, row.job_id) &&
      hasTag(row.labels, filter.tag) &&
      fits(filter.status, row.status) &&
      row.recipient.toLowerCase().includes(filter.recipientPart ?? '') &&
      row.from_address.toLowerCase().includes(filter.sender ?? '') &&
      row.created_at >= (filter.from ?? 0) &&
      row.created_at < (filter.to ?? Number.MAX_SAFE_INTEGER)
    );
  }

  it('are found by several statuses, and counted by status, with every combination of filters', () => {
    const { db, messages, period } = seeded();
    for (const maxScanned of [MAX_SCANNED, 1000]) {
      const { list, statusCounts } = messageList(db, maxScanned);
      const filters = combinations<
        Pick<MessageFilter, 'recipientHash' | 'campaignId' | 'sender' | 'from' | 'to'>
      >({
        recipientHash: [emailIdentifier(PEOPLE[0])],
        campaignId: ['campaign_acct_one'],
        sender: ['billing'],
        from: [period.from],
        to: [period.to],
      });
      for (const filter of filters) {
        const matching = messages.filter((row) => isWanted(row, 'acct_one', filter)).toReversed();
        for (const statuses of SEVERAL_STATUSES) {
          const found = allPages((seq) =>
            list({
              accountId: 'acct_one',
              ...filter,
              statuses,
              ...(seq === null ? {} : { beforeSeq: seq }),
              limit: LIMIT,
            }),
          );
          const expected = matching.filter(({ status }) => statuses.includes(status));
          expectRows(found.rows, expected, { statuses, ...filter });
        }
        for (const { status, count, isLeast } of statusCounts({ accountId: 'acct_one', ...filter })) {
          const all = matching.filter((row) => row.status === status).length;
          if (maxScanned === 1000 && isLeast) throw new Error(`not all ${status} messages were counted`);
          if (isLeast ? count > all : count !== all)
            expect({ count, isLeast }, `${status} ${JSON.stringify(filter)}`).toEqual({
              count: all,
              isLeast,
            });
        }
      }
    }
  });

  it('end a page after a number of examined rows, however few match', () => {
    const { db, messages } = seeded();
    const { list } = messageList(db, MAX_SCANNED);
    const all = messages.filter(({ account_id: account }) => account === 'acct_one').toReversed();
    expect(list({ accountId: 'acct_one', sender: 'absent', limit: LIMIT })).toEqual({
      rows: [],
      nextSeq: (all[MAX_SCANNED]?.seq ?? 0) + 1,
      // The number after the one that was not examined may be of another account.
      examinedSince: messages[all[MAX_SCANNED]?.seq ?? 0]?.created_at,
    });
  });

  it('return nothing for the groups of another account', () => {
    const { db } = seeded();
    const { list } = messageList(db, 1);
    for (const filter of [
      { campaignId: 'campaign_acct_one' },
      { jobId: 'job_acct_one' },
      { domainId: 'domain_acct_one_0' },
      { tag: 'gold', jobId: 'job_acct_one' },
    ])
      expect(list({ accountId: 'acct_two', ...filter, sender: 'absent', limit: LIMIT })).toEqual({
        rows: [],
        nextSeq: null,
        examinedSince: null,
      });
  });
});

describe('events', () => {
  it.each([0, 3, 1000])(
    'are found by every combination of filters, by %i messages at most',
    (maxMessages) => {
      const { db, messages, period } = seeded();
      const { feed } = eventFeed(db, MAX_SCANNED, maxMessages);
      const every = allPages((seq) => feed({ accountId: 'acct_one', afterSeq: seq ?? 0, limit: LIMIT })).rows;
      expect(every).toHaveLength(messages.length * 2 + 10 - foreign(messages));
      const filters = combinations<Omit<EventFilter, 'limit' | 'afterSeq' | 'accountId'>>({
        messageId: [messages[4]?.message_id ?? ''],
        recipientHash: [emailIdentifier(PEOPLE[0])],
        domainId: ['domain_acct_one_1'],
        campaignId: ['campaign_acct_one'],
        jobId: ['job_acct_one'],
        tag: ['gold'],
        status: ['bounced', 'delivered'],
        kind: ['email_sent', 'email_bounced', 'email_suppressed'],
        from: [period.from],
        to: [period.to],
      });
      const statusOf = new Map(messages.map(({ message_id: id, status }) => [id, status]));
      for (const filter of filters) {
        const { rows } = allPages((seq) =>
          feed({ accountId: 'acct_one', ...filter, afterSeq: seq ?? 0, limit: LIMIT }),
        );
        const expected = every.filter((row) => isWanted(row, statusOf.get(row.message_id ?? ''), filter));
        expectRows(rows, expected, filter);
      }
    },
  );

  /** Events of the other account. */
  function foreign(messages: MessageRow[]): number {
    const isForeign = (row: MessageRow | undefined) => row?.account_id === 'acct_two';
    return (
      messages.filter(isForeign).length +
      messages.filter((_, n) => isForeign(messages[Math.floor(n / 2)])).length
    );
  }

  function isWanted(
    row: EventRow,
    status: MessageStatus | undefined,
    filter: Omit<EventFilter, 'limit' | 'afterSeq' | 'accountId'>,
  ): boolean {
    const data: { contactIdentifier?: string; campaignId?: string } = JSON.parse(row.data);
    const fits = <T>(wanted: T | undefined, value: T) => wanted === undefined || wanted === value;
    return (
      fits(filter.messageId, row.message_id) &&
      fits(filter.recipientHash, row.recipient_hash ?? data.contactIdentifier) &&
      fits(filter.domainId, row.domain_id) &&
      fits(filter.campaignId, row.campaign_id ?? data.campaignId) &&
      fits(filter.jobId, row.job_id) &&
      hasTag(row.message_id === null ? row.data : row.labels, filter.tag) &&
      fits(filter.status, status) &&
      fits(filter.kind, row.kind) &&
      row.at >= (filter.from ?? 0) &&
      row.at < (filter.to ?? Number.MAX_SAFE_INTEGER)
    );
  }

  it('end a page after a number of examined rows, however few match', () => {
    const { db } = seeded();
    const { feed } = eventFeed(db, MAX_SCANNED, 0);
    const [first] = feed({ accountId: 'acct_one', afterSeq: 0, limit: 1 }).rows;
    const page = feed({ accountId: 'acct_one', afterSeq: 0, status: 'cancelled', limit: LIMIT });
    expect(page).toEqual({ rows: [], nextSeq: null });
    const rare = feed({
      accountId: 'acct_one',
      afterSeq: 0,
      recipientHash: emailIdentifier(PEOPLE[2]),
      kind: 'email_sent',
      limit: 200,
    });
    expect(rare.nextSeq).toBeGreaterThan(first?.seq ?? 0);
    expect(rare.rows.length).toBeLessThanOrEqual(MAX_SCANNED);
  });

  it('continue where the feed ended', () => {
    const { db, tables, clock } = seeded();
    const { feed } = eventFeed(db, MAX_SCANNED);
    let afterSeq = 0;
    for (
      let page = feed({ accountId: 'acct_one', afterSeq, kind: 'email_bounced', limit: LIMIT });
      page.nextSeq !== null;
    ) {
      afterSeq = page.nextSeq;
      page = feed({ accountId: 'acct_one', afterSeq, kind: 'email_bounced', limit: LIMIT });
    }
    const seq = tables.events.insert({
      event_id: 'evt_new',
      account_id: 'acct_one',
      kind: 'email_bounced',
      at: clock.now(),
      message_seq: null,
      domain_id: null,
      data: '{}',
    });
    const page = feed({ accountId: 'acct_one', afterSeq, kind: 'email_bounced', limit: LIMIT });
    expect(page.rows.map((row) => row.seq)).toEqual([seq]);
  });
});
