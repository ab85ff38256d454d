import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { type ParsedMail, simpleParser } from 'mailparser';
import { SMTPServer, type SMTPServerSession } from 'smtp-server';
import { forMailauth } from '../../dns/mailauth.ts';
import { createNameserver } from '../../dns/nameserver.ts';
import type { Resolver } from '../../dns/resolver.ts';
import type { ZoneRecord } from '../../dns/zone-record.ts';

/**
 * A small internet on loopback: a name server that knows every name, and a mail server that every domain's
 * MX leads to. Nothing leaves the machine.
 */
export const NAMES = {
  platform: 'mail.postrider.test',
  sender: 'shop.test',
  receiver: 'mx.inbox.test',
};

/** The receiving server knows nobody by this local part. */
export const UNKNOWN_USER = 'nobody';

export interface PrivateDns {
  address: string;
  publish(records: readonly ZoneRecord[]): void;
  close(): Promise<void>;
}

const LOOPBACK = '127.0.0.1';
const TTL = 60;

export async function startPrivateDns(): Promise<PrivateDns> {
  const published = new Map<string, ZoneRecord[]>();
  const publish = (records: readonly ZoneRecord[]) => {
    for (const record of records) {
      const name = record.name.toLowerCase();
      const others = (published.get(name) ?? []).filter(
        ({ type, value }) => type !== record.type || value !== record.value,
      );
      published.set(name, [...others, record]);
    }
  };
  publish([
    { name: NAMES.receiver, type: 'A', value: LOOPBACK, ttl: TTL },
    { name: NAMES.platform, type: 'A', value: LOOPBACK, ttl: TTL },
  ]);
  const server = await createNameserver({
    // Whoever is written to, under whatever name, is at the receiving server; the sender's side is as published.
    zone: {
      find: (name) =>
        published.get(name) ??
        (name.endsWith(NAMES.sender) || name.startsWith('_') || !name.includes('.')
          ? undefined
          : [{ name, type: 'MX', value: NAMES.receiver, priority: 10, ttl: TTL }]),
    },
    origins: ['.'],
    listen: { host: LOOPBACK, port: 0 },
    onFault: (fault) => console.error('the private DNS failed:', fault),
  });
  return { address: `${server.host}:${server.port}`, publish, close: () => server.close() };
}

export interface ReceivedMail {
  from: string;
  to: string;
  tls: string | null;
  dkim: string;
  mail: ParsedMail;
}

export interface Receiver {
  port: number;
  /** The next mail that comes, or the first one not yet taken. */
  next(): Promise<ReceivedMail>;
  /** From now on every mail is told of as it comes. */
  onMail(listener: (mail: ReceivedMail) => void): void;
  close(): Promise<void>;
}

const MAX_BYTES = 16 * 1024 * 1024;

/** Verifies DKIM as a real receiver would, asking `resolver` for the keys. */
export async function startReceiver(resolver: Resolver): Promise<Receiver> {
  const waiting: ((mail: ReceivedMail) => void)[] = [];
  const arrived: ReceivedMail[] = [];
  let listener: ((mail: ReceivedMail) => void) | null = null;

  function take(mail: ReceivedMail): void {
    const waiter = waiting.shift();
    if (waiter) waiter(mail);
    else if (listener) listener(mail);
    else arrived.push(mail);
  }

  const server = new SMTPServer({
    name: NAMES.receiver,
    banner: 'the demo receiver',
    authOptional: true,
    disabledCommands: ['AUTH'],
    disableReverseLookup: true,
    size: MAX_BYTES,
    logger: false,
    onRcptTo: ({ address }, _session, done) => {
      if (!address.toLowerCase().startsWith(`${UNKNOWN_USER}@`)) return done();
      done(
        Object.assign(new Error(`5.1.1 <${address}>: there is nobody of that name here`), {
          responseCode: 550,
        }),
      );
    },
    onData: (stream, session, done) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('error', (error) => done(error));
      stream.on('end', () => {
        const raw = Buffer.concat(chunks);
        // Read before the answer: after it the session is made ready for the next mail.
        const { mailFrom, rcptTo } = session.envelope;
        const from = mailFrom === false ? '' : mailFrom.address;
        const to = rcptTo.map(({ address }) => address).join(', ');
        const tls = cipherOf(session.tlsOptions);
        done(null, 'taken, thank you');
        Promise.all([simpleParser(raw), dkimResult(raw, resolver)])
          .then(([mail, dkim]) => take({ from, to, tls, dkim, mail }))
          .catch((error: unknown) => console.error('the demo receiver could not read a mail:', error));
      });
    },
  });
  server.on('error', (error) => console.error('the demo receiver failed:', error.message));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, LOOPBACK, () => resolve());
  });
  const bound = server.server.address();
  return {
    port: typeof bound === 'object' && bound !== null ? bound.port : 0,
    next: () => {
      const mail = arrived.shift();
      return mail === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(mail);
    },
    onMail: (tell) => {
      listener = tell;
      for (const mail of arrived.splice(0)) tell(mail);
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function cipherOf(tls: SMTPServerSession['tlsOptions']): string | null {
  return typeof tls === 'object' && 'standardName' in tls ? tls.standardName : null;
}

async function dkimResult(raw: Buffer, resolver: Resolver): Promise<string> {
  const { results } = await dkimVerify(raw, { resolver: forMailauth(resolver) });
  return (
    results.map(({ status, signingDomain }) => `${status.result} (d=${signingDomain})`).join(', ') || 'none'
  );
}

/** A data directory that is gone when the demo is. */
export function temporaryDataDir(): { dir: string; remove(): void } {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-demo-'));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}
