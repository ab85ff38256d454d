import type { SMTPServerSession } from 'smtp-server';
import { callerBlock } from '../../accounts/caller-addresses.ts';
import { type Clock, MINUTE } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { createLogWindow } from '../log-window.ts';
import { createMeters } from '../meter.ts';
import { SmtpReply } from '../reply.ts';

/**
 * Failed logins. A connection ends with 421 at its tenth, and an address that failed ten times within ten minutes
 * loses each connection at its next one. A valid key is accepted in any case: clients behind one address do not
 * lock each other out.
 */
export interface AuthFailures {
  /** Counts a failed login; the reply when the connection has to end. */
  count(session: SMTPServerSession, code: string): SmtpReply | null;
  /** Logs, one line per address and minute: to be called every few seconds. */
  sweep(): void;
  flush(): void;
}

export const MAX_FAILURES = 10;
const WINDOW_MS = 10 * MINUTE;
const ADDRESSES_REMEMBERED = 20_000;

export function createAuthFailures(deps: { clock: Clock; log: Pick<Log, 'warn'> }): AuthFailures {
  const { clock, log } = deps;
  const ofSession = new WeakMap<SMTPServerSession, number>();
  const ofAddress = createMeters(
    clock,
    // The tenth is above the burst.
    { burst: MAX_FAILURES - 1, perSecond: MAX_FAILURES / (WINDOW_MS / 1000) },
    ADDRESSES_REMEMBERED,
  );
  const lines = createLogWindow(clock, log, 'SMTP logins refused');
  return {
    count: (session, code) => {
      lines.count(session.remoteAddress, { code });
      const failures = (ofSession.get(session) ?? 0) + 1;
      ofSession.set(session, failures);
      const meter = ofAddress.of(callerBlock(session.remoteAddress));
      // More would keep the address out for longer than the window.
      if (meter.waitMs() === 0) meter.charge(1);
      return failures >= MAX_FAILURES || meter.waitMs() > 0
        ? new SmtpReply(421, '4.7.0', 'Too many failed logins; please try again later')
        : null;
    },
    sweep: lines.sweep,
    flush: lines.flush,
  };
}
