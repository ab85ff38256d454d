import type { Worker } from 'node:worker_threads';
import { SECOND } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { InboundParser } from '../../inbound/inbound.ts';
import { createLazyMailParser } from './mail-parser.ts';

/** A mail of the largest size takes two seconds. */
const TIMEOUT_MS = 15 * SECOND;

/**
 * The parser of the mail of accounts, with a thread of its own, so that this mail does not delay bounces. The thread starts with the
 * first mail; accounts share it by the time that their mails take. `startThread`: default: the compiled program.
 */
export function createInboundParser(log: Log, hostname: string, startThread?: () => Worker): InboundParser {
  const { parse, stop } = createLazyMailParser(log, { startThread, timeoutMs: TIMEOUT_MS });
  const originOf = (accountId: string) =>
    ({ priority: 'normal', caller: accountId, subject: accountId }) as const;
  return {
    parse: (raw, accountId) => parse({ purpose: 'inbound', raw, hostname }, originOf(accountId)),
    attachment: (raw, accountId, position) =>
      parse({ purpose: 'attachment', raw, position }, originOf(accountId)),
    verify: (raw, accountId, found) =>
      parse({ purpose: 'authentication', raw, ...found }, originOf(accountId)),
    stop,
  };
}
