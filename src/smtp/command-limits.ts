import type { SMTPServerSession } from 'smtp-server';
import type { Rate } from '../accounts/rate-limits.ts';
import { type Clock, SECOND } from '../core/clock.ts';
import { smtpCaller } from './caller.ts';
import { createMeter, createMeters, type Meter } from './meter.ts';
import { SmtpReply } from './reply.ts';

/**
 * How many SMTP commands and transactions a connection, an address and its network may use without completing a
 * message. Above the rate replies are delayed; when the delay would grow too long the connection ends with 421.
 * A completed message gives back what it took, so that servers with real mail are never slowed down.
 */
export interface CommandRates {
  connection: Rate;
  /** Of one IPv4 address or IPv6 /64. */
  block: Rate;
  /** Of one IPv4 /24 or IPv6 /48. */
  network: Rate;
  /** Transactions, begun and not completed, of one block and one network. */
  blockTransactions: Rate;
  networkTransactions: Rate;
  /** Transactions in one connection since the last completed message. */
  unfinished: number;
}

/** A command costs about 20 µs; 1,000 a second are some 2 % of a core. */
export const MX_COMMAND_RATES: CommandRates = {
  connection: { burst: 300, perSecond: 50 },
  block: { burst: 1000, perSecond: 200 },
  network: { burst: 4000, perSecond: 1000 },
  // Servers that verify our envelope senders connect, say MAIL and RCPT, and leave.
  blockTransactions: { burst: 200, perSecond: 10 },
  networkTransactions: { burst: 800, perSecond: 40 },
  unfinished: 20,
};

/** Applications also use one connection for much that is refused. */
export const SUBMISSION_COMMAND_RATES: CommandRates = {
  connection: { burst: 1000, perSecond: 200 },
  block: { burst: 2000, perSecond: 500 },
  network: { burst: 8000, perSecond: 2000 },
  blockTransactions: { burst: 500, perSecond: 50 },
  networkTransactions: { burst: 2000, perSecond: 200 },
  unfinished: 100,
};

/** Replies are not delayed further: the connection ends. */
export const MAX_DELAY_MS = 10 * SECOND;
const CONNECT_COST = 2;
/** In commands: what one that uses a private key, or the database, costs. */
const COSTS: Readonly<Record<string, number>> = { STARTTLS: 20, AUTH: 5, QUIT: 0 };
/** Commands beside MAIL, RCPT and DATA that a completed message gives back: greeting, TLS, login, RSET, NOOP. */
const OVERHEAD = 40;
const CALLERS_REMEMBERED = 20_000;

export interface CommandLimits {
  /** A new connection; the reply when its address or network is far above its rate. */
  connect(session: SMTPServerSession): SmtpReply | null;
  /** Charges a command; returns the delay before it may run, ms, or the reply that ends the connection. */
  command(session: SMTPServerSession, name: string): number | SmtpReply;
  /** A message was accepted for this many recipients. */
  complete(session: SMTPServerSession, recipients: number): void;
}

interface Usage {
  /** Of the connection, its block and its network. */
  commandMeters: Meter[];
  transactionMeters: Meter[];
  /** Since the last completed message. */
  spent: number;
  transactions: number;
}

/** State of a connection lives as long as its session. */
export function createCommandLimits(clock: Clock, rates: CommandRates): CommandLimits {
  const usages = new WeakMap<SMTPServerSession, Usage>();
  const commands = {
    block: createMeters(clock, rates.block, CALLERS_REMEMBERED),
    network: createMeters(clock, rates.network, CALLERS_REMEMBERED),
  };
  const transactions = {
    block: createMeters(clock, rates.blockTransactions, CALLERS_REMEMBERED),
    network: createMeters(clock, rates.networkTransactions, CALLERS_REMEMBERED),
  };

  function usageOf(session: SMTPServerSession): Usage {
    const known = usages.get(session);
    if (known !== undefined) return known;
    const { block, network } = smtpCaller(session.remoteAddress);
    const usage: Usage = {
      commandMeters: [
        createMeter(clock, rates.connection),
        commands.block.of(block),
        commands.network.of(network),
      ],
      transactionMeters: [transactions.block.of(block), transactions.network.of(network)],
      spent: 0,
      transactions: 0,
    };
    usages.set(session, usage);
    return usage;
  }

  const longest = (meters: Meter[]): number => Math.max(...meters.map((meter) => meter.waitMs()));
  const charge = (meters: Meter[], units: number): void => {
    for (const meter of meters) meter.charge(units);
  };

  return {
    connect: (session) => {
      const usage = usageOf(session);
      const meters = usage.commandMeters;
      if (longest(meters) > MAX_DELAY_MS) return TOO_MANY_COMMANDS();
      charge(meters, CONNECT_COST);
      usage.spent += CONNECT_COST;
      return null;
    },
    command: (session, name) => {
      const usage = usageOf(session);
      const cost = COSTS[name] ?? 1;
      if (cost === 0) return 0;
      const meters = usage.commandMeters;
      if (longest(meters) > MAX_DELAY_MS) return TOO_MANY_COMMANDS();
      if (name !== 'MAIL') {
        charge(meters, cost);
        usage.spent += cost;
        return longest(meters);
      }
      const begun = usage.transactionMeters;
      if (usage.transactions >= rates.unfinished || longest(begun) > MAX_DELAY_MS)
        return new SmtpReply(421, '4.7.0', 'Too many transactions without a message');
      charge(meters, cost);
      usage.spent += cost;
      charge(begun, 1);
      usage.transactions++;
      return longest([...meters, ...begun]);
    },
    complete: (session, recipients) => {
      const usage = usageOf(session);
      charge(usage.commandMeters, -Math.min(usage.spent, 2 + recipients + OVERHEAD));
      charge(usage.transactionMeters, -Math.min(usage.transactions, 1));
      usage.spent = 0;
      usage.transactions = 0;
    },
  };
}

const TOO_MANY_COMMANDS = () => new SmtpReply(421, '4.7.0', 'Too many commands; please try again later');
