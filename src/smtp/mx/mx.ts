import type { Worker } from 'node:worker_threads';
import type { SMTPServerSession } from 'smtp-server';
import type { Config } from '../../config/schema.ts';
import { type Clock, MINUTE } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { Resolver } from '../../dns/resolver.ts';
import type { Recorder } from '../../events/record.ts';
import { domainOf } from '../../mail/address.ts';
import type { Tokens } from '../../mail/tokens.ts';
import type { MessageRow } from '../../store/messages/messages.ts';
import type { Tables } from '../../store/tables.ts';
import type { Writer } from '../../store/writer.ts';
import { smtpCaller } from '../caller.ts';
import { createCertificateSource, filesOf } from '../certificate.ts';
import { MX_COMMAND_RATES } from '../command-limits.ts';
import { CONNECTION_LIMITS } from '../connections.ts';
import { createListener, type Listener } from '../listener.ts';
import { SmtpReply } from '../reply.ts';
import { createIntake } from './intake.ts';
import { createMailReader } from './parse-pool.ts';
import { createRcptPolicy, type Purpose } from './rcpt-policy.ts';
import { createReceiver } from './receive.ts';
import { createReceiveBudget } from './receive-budget.ts';

/**
 * The MX listener: bounces, complaints and reports come in here. A recipient is judged before any mail is
 * sent; a mail is read in a thread of its own and answered when what it changed is on disk, so that a crash
 * loses nothing that was answered.
 */
export interface MxSettings {
  config: Pick<Config, 'hostname' | 'mx'>;
  clock: Clock;
  log: Log;
  tables: Tables;
  writer: Writer;
  recorder: Recorder;
  tokens: Tokens;
  resolver: Pick<Resolver, 'txt'>;
  /** Whether the disk is too full to take mail. */
  isDiskLow(): boolean;
  optOut(tables: Tables, message: MessageRow): void;
  observe(purpose: string, result: string): void;
  /** A thread that runs parse-worker. */
  startReader(): Worker;
}

/** RFC 5321 §4.5.3.1.8. */
const RECIPIENTS = 100;
/** RFC 5321 §4.5.3.2.7. */
const IDLE_MS = 5 * MINUTE;
/** RFC 5321 §4.5.3.1.4 allows 512 octets, and extensions add to them. */
const COMMAND_LENGTH = 2048;
/** Memory for mails that are being received and read, in mails of the largest size. */
const BUDGET_MAILS = 8;
/** Parts of that memory: of one address, of one network, and for mail with a valid token alone. */
const BUDGET_SHARES = { holderShare: 1 / 4, networkShare: 1 / 2, reserve: 1 / 4 };

/** Rejects when it cannot be set up; `listen` is still to be called. */
export async function createMx(settings: MxSettings): Promise<Listener> {
  const { config, clock, log, tables, tokens } = settings;
  const { mx, hostname } = config;
  const policy = createRcptPolicy({
    clock,
    hostname,
    tokens,
    isRegistered: tables.domains.isRegistered,
    senderDomain: (id) => {
      const message = tables.messages.byId(id);
      return message === null ? null : domainOf(message.from_address);
    },
  });
  const intake = createIntake({ ...settings, hostname, feedbackLoops: mx.feedbackLoops });
  /** Envelopes with a recipient whose token is valid. */
  const proven = new WeakSet<SMTPServerSession['envelope']>();
  const certificate = createCertificateSource({ files: filesOf('mx.tls', mx.tls), hostname, clock, log });

  function busy(): SmtpReply | null {
    return settings.isDiskLow()
      ? new SmtpReply(452, '4.3.1', 'The disk is nearly full; please try again later')
      : null;
  }

  async function take(raw: Buffer, session: SMTPServerSession): Promise<string | SmtpReply> {
    const { mailFrom, rcptTo } = session.envelope;
    const recipients = rcptTo.flatMap(({ address }) => {
      const purpose = policy.judge(address);
      return isPurpose(purpose) ? [{ address, purpose }] : [];
    });
    // A domain may have been deleted since it was named.
    if (recipients.length === 0) return new SmtpReply(550, '5.1.1', 'No such address here');
    const sender = mailFrom === false ? '' : mailFrom.address;
    return receiver.receive({ raw, sender, recipients, remoteAddress: session.remoteAddress });
  }

  const listener = await createListener({
    name: 'mx.listen',
    listen: mx.listen,
    hostname,
    certificate,
    proxies: mx.proxyProtocol,
    limits: {
      ...CONNECTION_LIMITS,
      connections: mx.connections,
      perAddress: mx.connectionsPerAddress,
      mailBytes: mx.mailBytes,
      recipients: RECIPIENTS,
      idleMs: IDLE_MS,
      commandLength: COMMAND_LENGTH,
    },
    commandRates: MX_COMMAND_RATES,
    budget: createReceiveBudget(clock, { bytes: BUDGET_MAILS * mx.mailBytes, ...BUDGET_SHARES }),
    clock,
    log,
    options: { disabledCommands: [...NOT_HERE], lenientAddressParsing: true },
    onMail: busy,
    onRecipient: (address, session) => {
      const verdict = policy.judge(address);
      if (isPurpose(verdict)) {
        if ('messageId' in verdict) proven.add(session.envelope);
        return busy() ?? receiver.refusal(verdict, session.remoteAddress);
      }
      return verdict === 'not-ours'
        ? new SmtpReply(550, '5.7.1', 'Relaying denied')
        : new SmtpReply(550, '5.1.1', 'No such address here');
    },
    uploader: (session) => {
      const { block, network } = smtpCaller(session.remoteAddress);
      return { holder: block, network, isProven: proven.has(session.envelope) };
    },
    onData: take,
  });
  const reader = createMailReader({ startThread: settings.startReader, log });
  const receiver = createReceiver({ ...settings, reader, intake });
  return {
    ...listener,
    listen: async () => {
      // A thread that cannot even start would let every mail pass for unreadable.
      const turn = { priority: 'first', caller: '', subject: '' } as const;
      const job = { purpose: 'incoming', raw: Buffer.alloc(0), opensReports: false } as const;
      const tried = await reader.read(job, turn);
      if (tried === null || 'unreadable' in tried)
        throw new Error('the thread that reads incoming mail does not work');
      await listener.listen();
    },
    close: async (graceMs) => {
      await listener.close(graceMs);
      await reader.stop();
    },
  };
}

/** Nobody logs in here, and the package's jokes need not be told. */
const NOT_HERE = ['AUTH', 'XCLIENT', 'XFORWARD', 'WIZ', 'SHELL', 'KILL'];

function isPurpose(verdict: ReturnType<ReturnType<typeof createRcptPolicy>['judge']>): verdict is Purpose {
  return typeof verdict === 'object';
}
