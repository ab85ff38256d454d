import { Counter } from 'prom-client';
import { createAuthenticator } from '../accounts/authenticate.ts';
import { createKeyUses } from '../accounts/keys.ts';
import { createFailureLimits, createRateLimits } from '../accounts/rate-limits.ts';
import type { Log } from '../core/log.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { Recorder } from '../events/record.ts';
import { sentMailOf } from '../mail/sent-mail.ts';
import { rateLimitsOf } from '../reload.ts';
import type { Acceptance } from '../sending/accept.ts';
import type { Pressure } from '../sending/pressure.ts';
import type { SmtpListener } from '../smtp/listener.ts';
import { createMx } from '../smtp/mx/mx.ts';
import { createSubmission } from '../smtp/submission/submission.ts';
import type { Unsubscribing } from '../suppression/unsubscribe.ts';
import { GRACE_MS, logListener } from './context.ts';
import type { DaemonBase } from './storage.ts';

interface MxParts {
  resolver: Resolver;
  recorder: Recorder;
  unsubscribing: Unsubscribing;
  pressure: Pressure;
}

/** Creates the MX listener, which does not listen yet; null: it is off. */
export async function startMx(
  base: DaemonBase,
  { resolver, recorder, unsubscribing, pressure }: MxParts,
): Promise<SmtpListener | null> {
  const { config, registry, tokens, onStop } = base;
  const mailIn = new Counter({
    name: 'postrider_mail_in_total',
    help: 'Received mail by purpose and result.',
    labelNames: ['purpose', 'result'],
    registers: [registry],
  });
  if (config.mx.listen === 'off') return null;
  const mx = await createMx(base, {
    recorder,
    tokens,
    resolver,
    isDiskLow: pressure.isDiskLow,
    observe: (purpose, result) => mailIn.inc({ purpose, result }),
    optOut: (tx, message) => {
      const source = { method: 'mailto', ip: null, userAgent: null } as const;
      unsubscribing.optOut(tx, sentMailOf(message), 'list', source);
    },
  });
  onStop(() => mx.close(GRACE_MS));
  return mx;
}

/** Authentication and rate limits, shared by submission and API. */
export type DaemonAuthentication = ReturnType<typeof startAuthentication>;

/** Starts to record the uses of API keys. */
export function startAuthentication(base: DaemonBase) {
  const { config, clock, monotonic, log, writer, onStop } = base;
  const keyUses = createKeyUses({ writer, clock, log });
  keyUses.start();
  onStop(() => keyUses.stop());
  return {
    authenticator: createAuthenticator(base, {
      failures: createFailureLimits(monotonic),
      onUse: keyUses.note,
    }),
    rateLimits: createRateLimits(monotonic, rateLimitsOf(config.limits)),
  };
}

/** Creates the submission listener, which does not listen yet; null: it is off. */
export async function startSubmission(
  base: DaemonBase,
  { authenticator, rateLimits, acceptance }: DaemonAuthentication & { acceptance: Acceptance },
): Promise<SmtpListener | null> {
  const { config, tables, onStop } = base;
  if (config.submission.listen === 'off') return null;
  const submission = await createSubmission(base, {
    authenticator,
    rateLimits,
    acceptance,
    account: tables.accounts.get,
  });
  onStop(() => submission.close(GRACE_MS));
  return submission;
}

/** Binds the SMTP listeners. */
export async function listenForMail(
  log: Log,
  { mx, submission }: Record<'mx' | 'submission', SmtpListener | null>,
): Promise<void> {
  await mx?.listen();
  logListener(log, 'mx', mx?.address());
  await submission?.listen();
  logListener(log, 'submission', submission?.address());
}
