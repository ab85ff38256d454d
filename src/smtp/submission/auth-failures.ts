import type { SMTPServerSession } from 'smtp-server';
import { callerBlock } from '../../accounts/caller-addresses.ts';
import { type Clock, MINUTE } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { createTokenBuckets } from '../../core/token-bucket.ts';
import { createLogWindow } from '../log-window.ts';
import { SmtpRejection } from '../reply.ts';

/**
 * Limits failed logins. A connection ends with 421 at its tenth failure; when an address has failed ten times within ten
 * minutes, each further failure ends its connection. A valid key is always accepted, so that clients behind one address
 * do not lock each other out.
 */
export interface AuthFailures {
  /** Counts a failed login; returns the rejection when the connection must end. */
  count(session: SMTPServerSession, code: string): SmtpRejection | null;
  /** Logs one line per address and minute; called every few seconds. */
  sweep(): void;
  flush(): void;
}

export const MAX_FAILURES = 10;
const WINDOW_MS = 10 * MINUTE;
const MAX_ADDRESSES = 20_000;

/**
 * Counts in memory, for sessions and for 20,000 addresses (an IPv6 /64 is one), of which the least recently counted is
 * forgotten first. Has no timer: the listener calls `sweep`.
 */
export function createAuthFailures(deps: { clock: Clock; log: Pick<Log, 'warn'> }): AuthFailures {
  const { clock, log } = deps;
  const ofSession = new WeakMap<SMTPServerSession, number>();
  const ofAddress = createTokenBuckets(
    clock,
    // The tenth failure exceeds the burst.
    { burst: MAX_FAILURES - 1, perSecond: MAX_FAILURES / (WINDOW_MS / 1000) },
    MAX_ADDRESSES,
  );
  const logLines = createLogWindow(clock, log, 'SMTP logins refused');
  return {
    count: (session, code) => {
      logLines.count(session.remoteAddress, { code });
      const failures = (ofSession.get(session) ?? 0) + 1;
      ofSession.set(session, failures);
      const bucket = ofAddress.of(callerBlock(session.remoteAddress));
      // A charge above that would extend the limit beyond the window.
      if (bucket.waitMs() === 0) bucket.charge(1);
      return failures >= MAX_FAILURES || bucket.waitMs() > 0
        ? new SmtpRejection(421, '4.7.0', 'Too many failed logins; please try again later')
        : null;
    },
    sweep: logLines.sweep,
    flush: logLines.flush,
  };
}
