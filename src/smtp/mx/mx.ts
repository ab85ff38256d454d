import type { Worker } from 'node:worker_threads';
import type { SMTPServerSession } from 'smtp-server';
import { callerNetwork } from '../../accounts/caller-addresses.ts';
import type { Resolver } from '../../dns/resolver.ts';
import type { InboundObstacle, Reception } from '../../inbound/reception.ts';
import type { Tokens } from '../../mail/tokens.ts';
import type { MatchedRoute } from '../../store/inbound/inbound-routes.ts';
import { smtpCaller } from '../caller.ts';
import { certificateFiles, createCertificateSource } from '../certificate.ts';
import { MX_COMMAND_RATES } from '../command-limits.ts';
import { createSmtpListener, DISABLED_COMMANDS, type SmtpListener } from '../listener.ts';
import { createMailParser } from '../parser/mail-parser.ts';
import { SmtpRejection } from '../reply.ts';
import { createIntake, type IntakeOptions, type MxContext } from './intake.ts';
import { createRcptPolicy, type RcptVerdict } from './rcpt-policy.ts';
import { createMailReceiver } from './receive.ts';

export interface MxOptions extends IntakeOptions {
  tokens: Tokens;
  resolver: Pick<Resolver, 'txt'>;
  /** Receives the mail of accounts. */
  inbound: Reception;
  /** Whether the disk is too full for mail to the operator and accounts, and reports. */
  isDiskLow(): boolean;
  /** Starts a thread that runs parser/thread.ts; default: the compiled one. */
  startParserThread?: () => Worker;
}

/** RFC 5321 §4.5.3.1.4: 512 bytes, which extensions may increase. */
const MAX_COMMAND_LENGTH = 2048;
/** Shares of one address, of one network, and reserved for mail with a valid token. */
const BUDGET = { mails: 8, holderShare: 1 / 4, networkShare: 1 / 2, reserve: 1 / 4 };

/**
 * The MX listener: receives bounces, complaints, reports and the mail of accounts. Recipients are accepted or rejected before any mail is
 * sent; a report is parsed in a thread and answered when its effects are durable, the mail of an account is answered when it is
 * stored, so that a crash loses no accepted mail.
 * Does not listen yet. Rejects when the certificate cannot be used.
 */
export async function createMx(context: MxContext, options: MxOptions): Promise<SmtpListener> {
  const { config, log, tables } = context;
  const { tokens, resolver, inbound, isDiskLow, observe } = options;
  const { mx, hostname } = config;
  const judge = createRcptPolicy(tables, { hostname, tokens, inbound });
  /** Envelopes with at least one recipient that is a valid token. */
  const proven = new WeakSet<SMTPServerSession['envelope']>();
  const certificate = createCertificateSource(context, hostname, () => certificateFiles({ mx: config.mx }));

  function diskRejection(): SmtpRejection | null {
    return isDiskLow()
      ? new SmtpRejection(452, '4.3.1', 'The disk is nearly full; please try again later')
      : null;
  }

  /** The rejection of mail of this sender for a route; null: it is accepted. */
  function routeRejection(
    route: MatchedRoute,
    { sender, remoteAddress }: { sender: string; remoteAddress: string },
  ): SmtpRejection | null {
    const obstacle = inbound.obstacle(route, { sender, network: callerNetwork(remoteAddress) });
    return obstacle === null ? diskRejection() : new SmtpRejection(...OBSTACLES[obstacle]);
  }

  async function onData(raw: Buffer, session: SMTPServerSession): Promise<string | SmtpRejection> {
    const { remoteAddress } = session;
    const sender = senderOf(session);
    const verdicts = session.envelope.rcptTo.map(({ address }) => ({ address, verdict: judge(address) }));
    const recipients = verdicts.flatMap(({ address, verdict }) =>
      isAccepted(verdict) && verdict.kind !== 'inbound' ? [{ address, purpose: verdict }] : [],
    );
    const routed = verdicts.flatMap(({ address, verdict }) =>
      isAccepted(verdict) && verdict.kind === 'inbound' ? [{ ...verdict.route, address }] : [],
    );
    // The domain can have been deleted since RCPT.
    if (recipients.length + routed.length === 0)
      return new SmtpRejection(550, '5.1.1', 'No such address here');
    for (const route of routed) {
      const rejection = routeRejection(route, { sender, remoteAddress });
      if (rejection !== null) return rejection;
    }
    // Reports come first: repeated after a rejection of the rest, they have no second effect.
    const reply =
      recipients.length === 0 ? ACCEPTED : await receiver.receive({ raw, sender, recipients, remoteAddress });
    if (routed.length === 0 || typeof reply !== 'string') return reply;
    const helo = session.hostNameAppearsAs || '';
    const mail = {
      raw,
      sender,
      helo,
      remoteAddress,
      network: callerNetwork(remoteAddress),
      recipients: routed,
    };
    const result = await inbound.receive(mail);
    log.info({ purpose: 'inbound', result, remoteAddress, routes: routed.length }, 'mail received');
    observe('inbound', result);
    return result === 'received' ? ACCEPTED : new SmtpRejection(...RESULTS[result]);
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
      if (!isAccepted(verdict))
        return verdict === 'not-ours'
          ? new SmtpRejection(550, '5.7.1', 'Relaying denied')
          : new SmtpRejection(550, '5.1.1', 'No such address here');
      const { remoteAddress } = session;
      if (verdict.kind === 'inbound')
        return routeRejection(verdict.route, { sender: senderOf(session), remoteAddress });
      const isProven = 'messageId' in verdict;
      if (isProven) proven.add(session.envelope);
      // Bounces, complaints and opt-outs end mail that would otherwise be sent.
      return (isProven ? null : diskRejection()) ?? receiver.rejection(verdict, remoteAddress);
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

const ACCEPTED = 'OK: accepted';

/** The replies to mail that an account cannot receive now: the sender tries again (RFC 5321 §4.2.1). */
const OBSTACLES: Record<InboundObstacle, [code: number, enhanced: string, text: string]> = {
  'not-verified': [450, '4.3.5', 'The domain is not verified now; please try again later'],
  disabled: [450, '4.2.1', 'The mailbox is disabled now; please try again later'],
  storage: [452, '4.2.2', 'The mailbox is full; please try again later'],
  backlog: [450, '4.2.1', 'The mailbox has too much mail that waits; please try again later'],
  'too-much-from-sender': [450, '4.7.1', 'Too much mail from this sender; please try again later'],
  'too-much-for-account': [450, '4.2.1', 'The mailbox receives mail too quickly; please try again later'],
};

const RESULTS: Record<'forged' | 'unknown' | 'loop', [code: number, enhanced: string, text: string]> = {
  forged: [550, '5.7.1', 'Rejected by the DMARC policy of the domain in From'],
  unknown: [
    451,
    '4.7.1',
    'The DMARC policy of the domain in From could not be checked; please try again later',
  ],
  loop: [554, '5.4.6', 'Too many hops'],
};

function senderOf({ envelope: { mailFrom } }: SMTPServerSession): string {
  return mailFrom === false ? '' : mailFrom.address;
}

function isAccepted(verdict: RcptVerdict): verdict is Exclude<RcptVerdict, string> {
  return typeof verdict === 'object';
}
