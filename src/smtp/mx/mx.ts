import type { Worker } from 'node:worker_threads';
import type { SMTPServerSession } from 'smtp-server';
import type { Resolver } from '../../dns/resolver.ts';
import type { Tokens } from '../../mail/tokens.ts';
import { smtpCaller } from '../caller.ts';
import { certificateFiles, createCertificateSource } from '../certificate.ts';
import { MX_COMMAND_RATES } from '../command-limits.ts';
import { createSmtpListener, DISABLED_COMMANDS, type SmtpListener } from '../listener.ts';
import { createMailParser } from '../parser/mail-parser.ts';
import { SmtpRejection } from '../reply.ts';
import { createIntake, type IntakeOptions, type MxContext } from './intake.ts';
import { createRcptPolicy, type Purpose, type RcptVerdict } from './rcpt-policy.ts';
import { createMailReceiver } from './receive.ts';

export interface MxOptions extends IntakeOptions {
  tokens: Tokens;
  resolver: Pick<Resolver, 'txt'>;
  /** Whether the disk is too full for mail to the operator, and reports. */
  isDiskLow(): boolean;
  /** Starts a thread that runs parser/thread.ts; default: the compiled one. */
  startParserThread?: () => Worker;
}

/** RFC 5321 §4.5.3.1.4: 512 bytes, which extensions may increase. */
const MAX_COMMAND_LENGTH = 2048;
/** Shares of one address, of one network, and reserved for mail with a valid token. */
const BUDGET = { mails: 8, holderShare: 1 / 4, networkShare: 1 / 2, reserve: 1 / 4 };

/**
 * The MX listener: receives bounces, complaints and reports. Recipients are accepted or rejected before any mail is
 * sent; a mail is parsed in a thread and answered when its effects are durable, so that a crash loses no accepted mail.
 * Does not listen yet. Rejects when the certificate cannot be used.
 */
export async function createMx(context: MxContext, options: MxOptions): Promise<SmtpListener> {
  const { config, log, tables } = context;
  const { tokens, resolver, isDiskLow } = options;
  const { mx, hostname } = config;
  const judge = createRcptPolicy(tables, { hostname, tokens });
  /** Envelopes with at least one recipient that is a valid token. */
  const proven = new WeakSet<SMTPServerSession['envelope']>();
  const certificate = createCertificateSource(context, hostname, () => certificateFiles({ mx: config.mx }));

  function diskRejection(): SmtpRejection | null {
    return isDiskLow()
      ? new SmtpRejection(452, '4.3.1', 'The disk is nearly full; please try again later')
      : null;
  }

  async function onData(raw: Buffer, session: SMTPServerSession): Promise<string | SmtpRejection> {
    const { mailFrom, rcptTo } = session.envelope;
    const recipients = rcptTo.flatMap(({ address }) => {
      const verdict = judge(address);
      return isPurpose(verdict) ? [{ address, purpose: verdict }] : [];
    });
    // The domain can have been deleted since RCPT.
    if (recipients.length === 0) return new SmtpRejection(550, '5.1.1', 'No such address here');
    const sender = mailFrom === false ? '' : mailFrom.address;
    return receiver.receive({ raw, sender, recipients, remoteAddress: session.remoteAddress });
  }

  const listener = await createSmtpListener(context, {
    section: 'mx',
    settings: mx,
    certificate,
    mailBytes: mx.mailBytes,
    commandLength: MAX_COMMAND_LENGTH,
    commandRates: MX_COMMAND_RATES,
    budget: BUDGET,
    options: {
      ciphers: mx.ciphers,
      disabledCommands: ['AUTH', ...DISABLED_COMMANDS],
      lenientAddressParsing: true,
    },
    onRecipient: (address, session) => {
      const verdict = judge(address);
      if (isPurpose(verdict)) {
        const isProven = 'messageId' in verdict;
        if (isProven) proven.add(session.envelope);
        // Bounces, complaints and opt-outs end mail that would otherwise be sent.
        return (isProven ? null : diskRejection()) ?? receiver.rejection(verdict, session.remoteAddress);
      }
      return verdict === 'not-ours'
        ? new SmtpRejection(550, '5.7.1', 'Relaying denied')
        : new SmtpRejection(550, '5.1.1', 'No such address here');
    },
    uploader: (session) => {
      const { block, network } = smtpCaller(session.remoteAddress);
      return { holder: block, network, isProven: proven.has(session.envelope) };
    },
    onData,
    onClosed: () => parser.stop(),
  });
  const parser = createMailParser(log, {
    startThread: options.startParserThread,
    rules: () => config.delivery.replies,
  });
  const applyMail = createIntake(context, options);
  const receiver = createMailReceiver(context, { parser, applyMail, resolver });
  return {
    ...listener,
    listen: async () => {
      // If the thread could not start, every mail would be unreadable.
      const origin = { priority: 'first', caller: '', subject: '' } as const;
      const job = { purpose: 'incoming', raw: Buffer.alloc(0), opensReports: false } as const;
      const result = await parser.parse(job, origin);
      const failure = result === null ? 'busy' : 'unreadable' in result ? result.unreadable : null;
      if (failure !== null)
        throw new Error(
          `the mail parser thread did not parse an empty mail (${failure}); the log has the cause`,
        );
      await listener.listen();
    },
  };
}

function isPurpose(verdict: RcptVerdict): verdict is Purpose {
  return typeof verdict === 'object';
}
