import type { ExpectedAttempt } from './scenario.ts';

/** An attempt that delivered the message with the sink's usual reply. */
export function delivered(...sessions: readonly string[]): ExpectedAttempt {
  return { reply: '250 2.0.0', action: 'deliver', ...(sessions.length > 0 ? { sessions } : {}) };
}

/** An attempt that deferred the message; `wait`: time until the next one, undefined: not compared. */
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

/** An attempt that ended the message. */
export function bounced(
  reply: string,
  classification: string,
  ...sessions: readonly string[]
): ExpectedAttempt {
  return { reply, action: 'bounce', classification, ...(sessions.length > 0 ? { sessions } : {}) };
}
