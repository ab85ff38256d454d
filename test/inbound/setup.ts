import { onTestFinished } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { createSeal } from '../../src/core/seal.ts';
import { createResolver } from '../../src/dns/resolver.ts';
import type { EventFields } from '../../src/events/event-types.ts';
import { createInbound, type Inbound } from '../../src/inbound/inbound.ts';
import type { RouteInput } from '../../src/inbound/routes.ts';
import { createTokens } from '../../src/mail/tokens.ts';
import { createInboundParser } from '../../src/smtp/parser/inbound-parser.ts';
import type { Context } from '../../src/store/context.ts';
import type { StoredInbound } from '../../src/store/inbound/inbound-mails.ts';
import { HOST, startMx, startParser } from '../smtp/mx/setup.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import type { startStore } from '../support/store.ts';

export const PUBLIC_URL = 'https://link.postrider.example';

interface InboundSetup {
  /** Bytes that acct_one may store. Default: no limit. */
  storedBytes?: number;
  isDiskLow?: () => boolean;
  /** Whether received mail is parsed. Default: true. */
  parses?: boolean;
}

/** The MX listener with the reception of mail for accounts, over a real database, DNS server and parser thread. */
export async function startInboundMx({
  storedBytes,
  isDiskLow = () => false,
  parses = true,
}: InboundSetup = {}) {
  const dns: DnsServer = await startDnsServer();
  onTestFinished(() => dns.close());
  const monotonic = { now: () => performance.now() };
  const resolver = createResolver({
    resolvers: [dns.address],
    timeoutMs: 20_000,
    monotonic,
    random: systemRandom,
  });
  onTestFinished(() => resolver.close());
  const log = createLog({ level: 'silent', hashAddresses: false });
  const tokens = createTokens(createSeal(Buffer.alloc(32, 7), systemRandom));
  let created: Inbound | null = null;
  const mx = await startMx({
    deps: { isDiskLow },
    inbound: (store: ReturnType<typeof startStore>) => {
      created = createInbound(
        { ...store, monotonic: store.clock, log, config: { hostname: HOST } },
        {
          recorder: store.recorder,
          resolver,
          tokens,
          limits: store.limits,
          parser: createInboundParser(log, HOST, startParser),
          publicUrl: () => PUBLIC_URL,
        },
      );
      return created.reception;
    },
  });
  if (created === null) throw new Error('inbound mail was not created');
  const inbound: Inbound = created;
  if (parses) inbound.background.start();
  onTestFinished(() => inbound.background.stop());
  const { db, tables } = mx;
  if (storedBytes !== undefined)
    db.prepare(
      "INSERT INTO account_limits (account_id, stored_bytes) VALUES ('acct_one', ?) ON CONFLICT DO UPDATE SET stored_bytes = excluded.stored_bytes",
    ).run(storedBytes);

  const rows = () => db.prepare<[], StoredInbound>('SELECT * FROM inbound_mails ORDER BY seq').all();
  return {
    ...mx,
    dns,
    inbound,
    tokens,
    rows,
    /** Creates a route of acct_one at example.com. */
    route: async (match: string, more: Partial<RouteInput> = {}) => {
      const route = await inbound.routes.create('acct_one', {
        name: match,
        match,
        domainId: 'domain_one',
        action: 'store',
        spamPolicy: 'mark',
        isActive: true,
        ...more,
      });
      if (isRefusal(route)) throw new Error(route.message);
      return route;
    },
    /** Waits until all received mail is parsed. */
    parsed: () =>
      eventually('all received mail to be parsed', () => {
        const found = rows();
        return found.length > 0 && found.every(({ status }) => status === 'parsed') ? found : null;
      }),
    /** The fields of the events `email_received`, oldest first. */
    received: (): EventFields['email_received'][] =>
      tables.events
        .feed({ ...NO_FILTER, accountId: 'acct_one' })
        .rows.filter(({ kind }) => kind === 'email_received')
        .map(({ data }) => JSON.parse(data)),
    sourcesRemoved: () =>
      eventually('the sources to be removed', () => {
        const rest = db.prepare<[], number>('SELECT count(*) FROM inbound_sources').pluck().get();
        return rest === 0;
      }),
  };
}

/** Stores a mail that waits for the parser, with a source of this stated size; returns its id. */
export function storeMail(
  { tables, ids, clock }: Pick<Context, 'tables' | 'ids' | 'clock'>,
  {
    accountId = 'acct_one',
    raw = 'From: grace@example.net\r\nSubject: Hello\r\n\r\nx\r\n',
    size = raw.length,
    receivedAt = clock.now(),
    sender = 'grace@example.net',
  }: {
    accountId?: string;
    raw?: string;
    size?: number | undefined;
    receivedAt?: number;
    sender?: string;
  } = {},
): string {
  const sourceSeq = tables.inbound.insertSource(accountId, size);
  tables.inbound.insertPart(sourceSeq, 0, Buffer.from(raw));
  tables.inbound.setState(sourceSeq, 'stored');
  const inboundId = ids.make('inb');
  tables.inbound.insert({
    inbound_id: inboundId,
    account_id: accountId,
    route_id: 'route_one',
    source_seq: sourceSeq,
    status: 'received',
    sender,
    recipient: 'support@in.example.com',
    helo: 'mail.example.net',
    remote_address: '192.0.2.1',
    received_at: receivedAt,
    from_address: '',
    subject: '',
    answers: null,
    automatic: null,
    is_loop: 0,
    attachments: 0,
    parse_error: null,
    authentication: null,
    content: null,
  });
  return inboundId;
}

const NO_FILTER = { afterSeq: 0, limit: 200 };

/** A mail with header fields and a text body. */
export function mailOf(fields: Record<string, string>, body: string): string {
  const header = {
    From: 'Grace <grace@example.net>',
    To: 'support@in.example.com',
    Subject: 'Hello',
    ...fields,
  };
  const lines = Object.entries(header).map(([name, value]) => `${name}: ${value}`);
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}
