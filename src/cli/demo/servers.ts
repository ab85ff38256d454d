import { createHmac, timingSafeEqual } from 'node:crypto';
import { EventEmitter, on, once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { type ParsedMail, simpleParser } from 'mailparser';
import { SMTPServer, type SMTPServerSession } from 'smtp-server';
import { forMailauth } from '../../dns/mailauth.ts';
import { createNameserver } from '../../dns/nameserver.ts';
import type { Resolver } from '../../dns/resolver.ts';
import type { ZoneRecord } from '../../dns/zone-record.ts';

/*
 * What surrounds a mail platform, in this process: the DNS, the mail server of all recipients, and the application that
 * receives webhook calls. Each listens on a free port of the loopback address until `close`.
 */

/** Host names of the demo. `.test` is reserved (RFC 6761 §6.2). */
export const NAMES = { platform: 'mail.postrider.test', sender: 'shop.test', receiver: 'mx.inbox.test' };
/** A local part that the receiving server rejects at RCPT. */
export const UNKNOWN_USER = 'unknown';
const LOOPBACK = '127.0.0.1';

/** Without records, a recipient domain has the receiving server as its MX, and a name of the sender does not exist. */
export async function startPrivateDns() {
  const published = new Map<string, ZoneRecord>();
  const publish = (records: readonly ZoneRecord[]): void => {
    for (const record of records) published.set(`${record.type} ${record.name} ${record.value}`, record);
  };
  const ttl = 60;
  for (const name of [NAMES.receiver, NAMES.platform]) publish([{ name, type: 'A', value: LOOPBACK, ttl }]);
  const isOfRecipient = (name: string) =>
    name.includes('.') && !name.endsWith(NAMES.sender) && !name.startsWith('_');
  const find = (name: string): ZoneRecord[] | undefined => {
    const records = [...published.values()].filter((record) => record.name.toLowerCase() === name);
    if (records.length > 0) return records;
    return isOfRecipient(name) ? [{ name, type: 'MX', value: NAMES.receiver, priority: 10, ttl }] : undefined;
  };
  const server = await createNameserver({
    zone: { find },
    origins: ['.'],
    listen: { host: LOOPBACK, port: 0 },
    onError: (error) => console.error('private DNS server failed:', error),
  });
  return { address: `${server.host}:${server.port}`, publish, close: () => server.close() };
}

/** What arrives: `next` waits for each item in turn, until `onItem` is called. */
function createInbox<Item>() {
  const arrivals = new EventEmitter<{ item: [Item] }>();
  const items = on(arrivals, 'item');
  return {
    add: (item: Item): void => void arrivals.emit('item', item),
    next: async (): Promise<Item> => {
      const [item]: Item[] = (await items.next()).value;
      if (item === undefined) throw new Error('the inbox is closed');
      return item;
    },
    /** Calls `callback` with every further item. */
    onItem: (callback: (item: Item) => void): void => void arrivals.on('item', callback),
  };
}

export interface DeliveredMail {
  envelope: { from: string; to: string };
  tls: string | null;
  dkim: string;
  mail: ParsedMail;
}

const MAX_MAIL_BYTES = 16 * 1024 * 1024;

/** The mail server of all recipient domains: refuses UNKNOWN_USER at RCPT and accepts everything else. DKIM keys are read from `resolver`. */
export async function startReceiver(resolver: Resolver) {
  const inbox = createInbox<DeliveredMail>();

  async function receive(
    raw: Buffer,
    { envelope: { mailFrom, rcptTo }, tlsOptions }: SMTPServerSession,
  ): Promise<DeliveredMail> {
    const { results } = await dkimVerify(raw, { resolver: forMailauth(resolver) });
    const dkim = results.map(({ status, signingDomain }) => `${status.result} (d=${signingDomain})`);
    return {
      envelope: {
        from: mailFrom === false ? '' : mailFrom.address,
        to: rcptTo.map(({ address }) => address).join(', '),
      },
      tls: typeof tlsOptions === 'object' && 'standardName' in tlsOptions ? tlsOptions.standardName : null,
      dkim: dkim.join(', ') || 'none',
      mail: await simpleParser(raw),
    };
  }

  const server = new SMTPServer({
    name: NAMES.receiver,
    banner: 'demo receiver',
    authOptional: true,
    disabledCommands: ['AUTH'],
    disableReverseLookup: true,
    size: MAX_MAIL_BYTES,
    logger: false,
    onRcptTo: ({ address }, _session, done) => {
      if (!address.toLowerCase().startsWith(`${UNKNOWN_USER}@`)) return done();
      done(Object.assign(new Error(`5.1.1 <${address}>: user unknown`), { responseCode: 550 }));
    },
    onData: (stream, session, done) => {
      const accept = async () => {
        const mail = await receive(await buffer(stream), session);
        done(null, 'accepted');
        inbox.add(mail);
      };
      accept().catch((error: unknown) => console.error('demo receiver failed to process a message:', error));
    },
  });
  server.on('error', (error) => console.error('demo receiver failed:', error.message));
  return {
    port: await listen(server.server),
    next: inbox.next,
    onMail: inbox.onItem,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

/** The fields of a call that the demo reads; `object` is a message or a domain. */
export interface ReceivedCall {
  id: string;
  type: string;
  data: { object: { recipient?: string; domain?: string } };
}

/**
 * The application of the account: accepts webhook calls with a valid signature (https://www.standardwebhooks.com), and
 * each event once.
 */
export type WebhookReceiver = Awaited<ReturnType<typeof startWebhookReceiver>>;

/** Older calls are rejected as replays. */
const MAX_AGE_S = 5 * 60;

/** Responds with 401 without a valid signature, else with 204. */
export async function startWebhookReceiver() {
  const eventIds = new Set<string>();
  const inbox = createInbox<ReceivedCall>();
  let key: Buffer | null = null;
  function statusOf({ headers }: IncomingMessage, body: string): number {
    if (key === null || !isSigned(key, headers, body)) return 401;
    const call = JSON.parse(body) as ReceivedCall;
    if (!eventIds.has(call.id)) inbox.add(call);
    eventIds.add(call.id);
    return 204;
  }

  const server = createServer((request, response) => {
    text(request)
      .then((body) => response.writeHead(statusOf(request, body)).end())
      .catch((error: unknown) => console.error('demo webhook receiver failed:', error));
  });
  return {
    /** URL for webhook calls. */
    url: `http://${LOOPBACK}:${await listen(server)}/webhook`,
    /** Sets the webhook's secret; all calls are rejected before. */
    trust: (secret: string): void => {
      key = Buffer.from(secret.replace('whsec_', ''), 'base64');
    },
    next: inbox.next,
    /** Ids of all received events. */
    eventIds: (): ReadonlySet<string> => eventIds,
    onCall: inbox.onItem,
    close: (): Promise<void> => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Whether one of the signatures is valid: during a rotation of the secret there are several. */
function isSigned(key: Buffer, headers: IncomingHttpHeaders, body: string): boolean {
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) =>
    String(headers[`webhook-${name}`]),
  );
  const ageInS = Date.now() / 1000 - Number(timestamp);
  if (!(Math.abs(ageInS) < MAX_AGE_S)) return false;
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest();
  return (signatures ?? '').split(' ').some((signature) => {
    const actual = Buffer.from(signature.replace('v1,', ''), 'base64');
    return actual.length === expected.length && timingSafeEqual(actual, expected);
  });
}

/** Listens on a free port, which it returns; rejects when it cannot bind. */
async function listen(server: Server): Promise<number> {
  server.listen(0, LOOPBACK);
  await once(server, 'listening');
  // A string is the path of a Unix socket, null a server that does not listen.
  return (server.address() as AddressInfo).port;
}
