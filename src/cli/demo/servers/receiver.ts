import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { type ParsedMail, simpleParser } from 'mailparser';
import { SMTPServer, type SMTPServerSession } from 'smtp-server';
import { forMailauth } from '../../../dns/mailauth.ts';
import type { Resolver } from '../../../dns/resolver.ts';
import { GONE_USER, LOOPBACK, NAMES, UNKNOWN_USER } from './names.ts';

/** The mail server of all recipient domains. */
export interface Receiver {
  port: number;
  /** The first message not returned yet, or the next one. */
  next(): Promise<DeliveredMail>;
  /** Calls `listener` with every further message. */
  onMail(listener: (mail: DeliveredMail) => void): void;
  close(): Promise<void>;
}

export interface DeliveredMail {
  /** Envelope sender. */
  from: string;
  to: string;
  tls: string | null;
  dkim: string;
  mail: ParsedMail;
}

export interface ReceiverOptions {
  /** For DKIM keys. */
  resolver: Resolver;
  /** Bounces an accepted message. */
  sendBack(mail: DeliveredMail): Promise<void>;
}

const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Listens on a free port of the loopback address until `close`; rejects when it cannot bind. Refuses UNKNOWN_USER at
 * RCPT, accepts everything else and passes mail for GONE_USER to `sendBack`. Mail stays in memory until it is returned.
 */
export async function startReceiver({ resolver, sendBack }: ReceiverOptions): Promise<Receiver> {
  const waiting: ((mail: DeliveredMail) => void)[] = [];
  const arrived: DeliveredMail[] = [];
  let listener: ((mail: DeliveredMail) => void) | null = null;

  function deliver(mail: DeliveredMail): void {
    const waiter = waiting.shift();
    if (waiter) waiter(mail);
    else if (listener) listener(mail);
    else arrived.push(mail);
  }

  const server = new SMTPServer({
    name: NAMES.receiver,
    banner: 'demo receiver',
    authOptional: true,
    disabledCommands: ['AUTH'],
    disableReverseLookup: true,
    size: MAX_BYTES,
    logger: false,
    onRcptTo: ({ address }, _session, done) => {
      if (!isFor(UNKNOWN_USER, address)) return done();
      done(
        Object.assign(new Error(`5.1.1 <${address}>: user unknown`), {
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
        // Read before the reply, which resets the session.
        const { mailFrom, rcptTo } = session.envelope;
        const from = mailFrom === false ? '' : mailFrom.address;
        const to = rcptTo.map(({ address }) => address).join(', ');
        const tls = cipherOf(session.tlsOptions);
        done(null, 'accepted');
        Promise.all([simpleParser(raw), dkimResult(raw, resolver)])
          .then(async ([mail, dkim]) => {
            const received = { from, to, tls, dkim, mail };
            deliver(received);
            if (isFor(GONE_USER, to)) await sendBack(received);
          })
          .catch((error: unknown) => console.error('demo receiver failed to process a message:', error));
      });
    },
  });
  server.on('error', (error) => console.error('demo receiver failed:', error.message));
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
    onMail: (callback) => {
      listener = callback;
      for (const mail of arrived.splice(0)) callback(mail);
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function isFor(user: string, address: string): boolean {
  return address.toLowerCase().startsWith(`${user}@`);
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
