import type { SMTPServerSession } from 'smtp-server';
import { type Clock, SECOND } from '../core/clock.ts';
import { createTokenBucket, createTokenBuckets, type Rate, type TokenBucket } from '../core/token-bucket.ts';
import { smtpCaller } from './caller.ts';
import { SmtpRejection } from './reply.ts';

/*
 * Limits the SMTP commands and transactions that a connection, an address and its network use without completing a
 * message. Above the rate replies are delayed; when the delay would grow too long the connection ends with 421.
 * A completed message returns the tokens it took, so that servers that deliver mail are not slowed down.
 */

/** The limits in force. */
export interface CommandRates {
  connection: Rate;
  /** Rate of one IPv4 address or IPv6 /64. */
  block: Rate;
  /** Rate of one IPv4 /24 or IPv6 /48. */
  network: Rate;
  /** Transactions without a completed message, of one block and one network. */
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
  // Servers that verify our envelope senders connect, send MAIL and RCPT, and disconnect.
  blockTransactions: { burst: 200, perSecond: 10 },
  networkTransactions: { burst: 800, perSecond: 40 },
  unfinished: 20,
};

/** Higher: applications send many messages that are rejected over one connection. */
export const SUBMISSION_COMMAND_RATES: CommandRates = {
  connection: { burst: 1000, perSecond: 200 },
  block: { burst: 2000, perSecond: 500 },
  network: { burst: 8000, perSecond: 2000 },
  blockTransactions: { burst: 500, perSecond: 50 },
  networkTransactions: { burst: 2000, perSecond: 200 },
  unfinished: 100,
};

/** Beyond this delay the connection ends. */
export const MAX_DELAY_MS = 10 * SECOND;
const CONNECT_COST = 2;
/** Cost of commands that use a private key or the database, in ordinary commands. */
const COSTS: Readonly<Record<string, number>> = { STARTTLS: 20, AUTH: 5, QUIT: 0 };
/** Commands other than MAIL, RCPT and DATA that a completed message returns: greeting, TLS, login, RSET, NOOP. */
const MAX_OVERHEAD = 40;
const MAX_CALLERS = 20_000;

interface Usage {
  /** Buckets of the connection, its block and its network. */
  commandBuckets: TokenBucket[];
  transactionBuckets: TokenBucket[];
  /** Tokens taken since the last completed message. */
  spent: number;
  transactions: number;
}

export type CommandLimits = ReturnType<typeof createCommandLimits>;

/** The state of a connection is held by its session. */
export function createCommandLimits(clock: Clock, rates: CommandRates) {
  const usages = new WeakMap<SMTPServerSession, Usage>();
  const commands = {
    block: createTokenBuckets(clock, rates.block, MAX_CALLERS),
    network: createTokenBuckets(clock, rates.network, MAX_CALLERS),
  };
  const transactions = {
    block: createTokenBuckets(clock, rates.blockTransactions, MAX_CALLERS),
    network: createTokenBuckets(clock, rates.networkTransactions, MAX_CALLERS),
  };

  function usageOf(session: SMTPServerSession): Usage {
    const known = usages.get(session);
    if (known !== undefined) return known;
    const { block, network } = smtpCaller(session.remoteAddress);
    const usage: Usage = {
      commandBuckets: [
        createTokenBucket(clock, rates.connection),
        commands.block.of(block),
        commands.network.of(network),
      ],
      transactionBuckets: [transactions.block.of(block), transactions.network.of(network)],
      spent: 0,
      transactions: 0,
    };
    usages.set(session, usage);
    return usage;
  }

  const longest = (buckets: TokenBucket[]): number => Math.max(...buckets.map((bucket) => bucket.waitMs()));
  const charge = (buckets: TokenBucket[], tokens: number): void => {
    for (const bucket of buckets) bucket.charge(tokens);
  };

  return {
    /** Charges a new connection; returns the reply when its address or network is far above its rate. */
    connect: (session: SMTPServerSession): SmtpRejection | null => {
      const usage = usageOf(session);
      const buckets = usage.commandBuckets;
      if (longest(buckets) > MAX_DELAY_MS) return tooManyCommands();
      charge(buckets, CONNECT_COST);
      usage.spent += CONNECT_COST;
      return null;
    },
    /** Charges a command; returns the delay before it may run, ms, or the reply that ends the connection. */
    command: (session: SMTPServerSession, name: string): number | SmtpRejection => {
      const usage = usageOf(session);
      const cost = COSTS[name] ?? 1;
      if (cost === 0) return 0;
      const { commandBuckets, transactionBuckets } = usage;
      if (longest(commandBuckets) > MAX_DELAY_MS) return tooManyCommands();
      if (name !== 'MAIL') {
        charge(commandBuckets, cost);
        usage.spent += cost;
        return longest(commandBuckets);
      }
      if (usage.transactions >= rates.unfinished || longest(transactionBuckets) > MAX_DELAY_MS)
        return new SmtpRejection(421, '4.7.0', 'Too many transactions without a message');
      charge(commandBuckets, cost);
      usage.spent += cost;
      charge(transactionBuckets, 1);
      usage.transactions++;
      return longest([...commandBuckets, ...transactionBuckets]);
    },
    /** A message was accepted for this many recipients. */
    complete: (session: SMTPServerSession, recipients: number): void => {
      const usage = usageOf(session);
      charge(usage.commandBuckets, -Math.min(usage.spent, 2 + recipients + MAX_OVERHEAD));
      charge(usage.transactionBuckets, -Math.min(usage.transactions, 1));
      usage.spent = 0;
      usage.transactions = 0;
    },
  };
}

function tooManyCommands(): SmtpRejection {
  return new SmtpRejection(421, '4.7.0', 'Too many commands; please try again later');
}
