import type { ExpectedAttempt } from './scenario.ts';

/** An attempt that delivered the message, with the default reply of the sink. */
export function delivered(...sessions: readonly string[]): ExpectedAttempt {
  return { reply: '250 2.0.0', action: 'deliver', ...(sessions.length > 0 ? { sessions } : {}) };
}

/** An attempt that deferred the message. `wait`: time until the next attempt; undefined: not compared. */
export function deferred(
  reply: string,
  classification: string,
  wait: ExpectedAttempt['wait'] | undefined,
  ...sessions: readonly string[]
): ExpectedAttempt {
  return {
    reply,
    action: 'defer',
    classification,
    ...(sessions.length > 0 ? { sessions } : {}),
    ...(wait === undefined ? {} : { wait }),
  };
}

/** An attempt after which the message is final, undelivered. */
export function bounced(
  reply: string,
  classification: string,
  ...sessions: readonly string[]
): ExpectedAttempt {
  return { reply, action: 'bounce', classification, ...(sessions.length > 0 ? { sessions } : {}) };
}
