import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { type ParsedMail, simpleParser } from 'mailparser';
import { createTransport } from 'nodemailer';
import { SMTPServer } from 'smtp-server';
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
/** A local part for which the receiving server accepts messages and bounces them afterwards. */
export const GONE_USER = 'gone';
const LOOPBACK = '127.0.0.1';

/** A name server in which every domain has the receiving server as its MX. */
export type PrivateDns = Awaited<ReturnType<typeof startPrivateDns>>;

/** Without records, a recipient domain has the MX and a name of the sender does not exist. */
export async function startPrivateDns() {
  const published = new Map<string, ZoneRecord[]>();
  /** Records replace those with the same name, type and value. */
  const publish = (records: readonly ZoneRecord[]) => {
    for (const record of records) {
      const name = record.name.toLowerCase();
      const others = (published.get(name) ?? []).filter(
        ({ type, value }) => type !== record.type || value !== record.value,
      );
      published.set(name, [...others, record]);
    }
  };
  const ttl = 60;
  for (const name of [NAMES.receiver, NAMES.platform]) publish([{ name, type: 'A', value: LOOPBACK, ttl }]);
  const isOfRecipient = (name: string) =>
    name.includes('.') && !name.endsWith(NAMES.sender) && !name.startsWith('_');
  const server = await createNameserver({
    zone: {
      find: (name) =>
        published.get(name) ??
        (isOfRecipient(name) ? [{ name, type: 'MX', value: NAMES.receiver, priority: 10, ttl }] : undefined),
    },
    origins: ['.'],
    listen: { host: LOOPBACK, port: 0 },
    onError: (error) => console.error('private DNS server failed:', error),
  });
  return { address: `${server.host}:${server.port}`, publish, close: () => server.close() };
}

/** What has arrived and was not taken yet. Only one `take` may wait at a time. */
function createInbox<Item>() {
  const arrived: Item[] = [];
  let check = () => {};
  let listener: ((item: Item) => void) | null = null;
  return {
    add: (item: Item) => {
      if (listener !== null) return listener(item);
      arrived.push(item);
      check();
    },
    /** Removes the items that `pick` returns, as soon as it returns some. */
    take: (pick: (items: readonly Item[]) => readonly Item[] | null) =>
      new Promise<readonly Item[]>((resolve) => {
        check = () => {
          const taken = pick(arrived);
          if (taken === null) return;
          check = () => {};
          for (const item of taken) arrived.splice(arrived.indexOf(item), 1);
          resolve(taken);
        };
        check();
      }),
    /** Calls `callback` with every further item. */
    onItem: (callback: (item: Item) => void) => {
      listener = callback;
      for (const item of arrived.splice(0)) callback(item);
    },
  };
}

export interface DeliveredMail {
  /** Envelope sender. */
  from: string;
  to: string;
  tls: string | null;
  dkim: string;
  mail: ParsedMail;
}

/** The mail server of all recipient domains. */
export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

const MAX_MAIL_BYTES = 16 * 1024 * 1024;

/**
 * Refuses UNKNOWN_USER at RCPT, accepts everything else, and bounces mail for GONE_USER to `bouncePort`. DKIM keys are
 * read from `resolver`.
 */
export async function startReceiver(resolver: Resolver, bouncePort: () => number) {
  const inbox = createInbox<DeliveredMail>();
  const isFor = (user: string, address: string) => address.toLowerCase().startsWith(`${user}@`);

  async function receive(raw: Buffer, envelope: Pick<DeliveredMail, 'from' | 'to' | 'tls'>): Promise<void> {
    const { results } = await dkimVerify(raw, { resolver: forMailauth(resolver) });
    const dkim = results.map(({ status, signingDomain }) => `${status.result} (d=${signingDomain})`);
    const mail = await simpleParser(raw);
    inbox.add({ ...envelope, dkim: dkim.join(', ') || 'none', mail });
    if (isFor(GONE_USER, envelope.to)) await bounce(envelope, mail.messageId ?? '', bouncePort());
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
      if (!isFor(UNKNOWN_USER, address)) return done();
      done(Object.assign(new Error(`5.1.1 <${address}>: user unknown`), { responseCode: 550 }));
    },
    onData: (stream, { envelope: { mailFrom, rcptTo }, tlsOptions }, done) => {
      const envelope = {
        from: mailFrom === false ? '' : mailFrom.address,
        to: rcptTo.map(({ address }) => address).join(', '),
        tls: typeof tlsOptions === 'object' && 'standardName' in tlsOptions ? tlsOptions.standardName : null,
      };
      const accept = async () => {
        const raw = await buffer(stream);
        done(null, 'accepted');
        await receive(raw, envelope);
      };
      accept().catch((error: unknown) => console.error('demo receiver failed to process a message:', error));
    },
  });
  server.on('error', (error) => console.error('demo receiver failed:', error.message));
  return {
    port: await listen(server.server),
    /** The first message not returned yet, or the next one. */
    next: async (): Promise<DeliveredMail> => {
      const [mail] = await inbox.take(([first]) => (first === undefined ? null : [first]));
      if (mail === undefined) throw new Error('no message was taken');
      return mail;
    },
    onMail: inbox.onItem,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

/** Sends a bounce (RFC 3464) to the envelope sender; resolves when the server at `port` has accepted it. */
async function bounce(
  { from, to }: { from: string; to: string },
  messageId: string,
  port: number,
): Promise<void> {
  const report = `From: Mail Delivery System <mailer-daemon@${NAMES.receiver}>
To: ${from}
Subject: Undelivered mail
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="part"

--part
Content-Type: text/plain

Your message to ${to} was accepted, but the mailbox no longer exists.

--part
Content-Type: message/delivery-status

Reporting-MTA: dns; ${NAMES.receiver}

Final-Recipient: rfc822; ${to}
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 <${to}>: the mailbox no longer exists

--part
Content-Type: text/rfc822-headers

Message-ID: ${messageId}

--part--
`;
  // Opportunistic TLS, as between mail servers.
  const transport = { host: LOOPBACK, port, name: NAMES.receiver, tls: { rejectUnauthorized: false } };
  const envelope = { from: '', to: from };
  await createTransport(transport).sendMail({ envelope, raw: report.replaceAll('\n', '\r\n') });
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

const CALL_TIMEOUT_MS = 10_000;
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
    /** Resolves with one call of each type, in order of arrival; each call is returned once. Rejects after 10 s. */
    received: async (...types: string[]): Promise<readonly ReceivedCall[]> => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(
          () => reject(new Error(`no webhook call for ${types.join(', ')}`)),
          CALL_TIMEOUT_MS,
        );
      });
      return Promise.race([inbox.take((calls) => oneOfEach(types, calls)), late]).finally(() =>
        clearTimeout(timer),
      );
    },
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

/** One call of each type, in order of arrival; null while one is missing. */
function oneOfEach(types: readonly string[], calls: readonly ReceivedCall[]): ReceivedCall[] | null {
  const missing = [...types];
  const found = calls.filter(({ type }) => {
    const at = missing.indexOf(type);
    return at !== -1 && missing.splice(at, 1).length === 1;
  });
  return missing.length === 0 ? found : null;
}

/** Listens on a free port, which it returns; rejects when it cannot bind. */
async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, LOOPBACK, resolve);
  });
  // A string is the path of a Unix socket, null a server that does not listen.
  return (server.address() as AddressInfo).port;
}
