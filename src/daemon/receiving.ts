import { Counter } from 'prom-client';
import { createAuthenticator } from '../accounts/authenticate.ts';
import { createKeyUses } from '../accounts/keys.ts';
import type { AccountLimits } from '../accounts/limits.ts';
import { createFailureLimits, createRateLimits } from '../accounts/rate-limits.ts';
import type { Log } from '../core/log.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { Recorder } from '../events/record.ts';
import { createInbound, type Inbound } from '../inbound/inbound.ts';
import { sentMailOf } from '../mail/sent-mail.ts';
import { rateLimitsOf } from '../reload.ts';
import type { Acceptance } from '../sending/accept.ts';
import type { Pressure } from '../sending/pressure.ts';
import type { SmtpListener } from '../smtp/listener.ts';
import { createMx } from '../smtp/mx/mx.ts';
import { createInboundParser } from '../smtp/parser/inbound-parser.ts';
import { createSubmission } from '../smtp/submission/submission.ts';
import type { Unsubscribing } from '../suppression/unsubscribe.ts';
import { GRACE_MS, logListener } from './context.ts';
import type { DaemonBase } from './storage.ts';

interface MxParts {
  resolver: Resolver;
  recorder: Recorder;
  unsubscribing: Unsubscribing;
  pressure: Pressure;
  inbound: Inbound;
}

/** Creates the MX listener, which does not listen yet; null: it is off. */
export async function startMx(
  base: DaemonBase,
  { resolver, recorder, unsubscribing, pressure, inbound }: MxParts,
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
    inbound: inbound.reception,
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

/** Creates the reception of mail for accounts, whose background work does not run yet. `publicUrl`: called when links are created. */
export function startInbound(
  base: DaemonBase,
  {
    resolver,
    recorder,
    limits,
    publicUrl,
  }: { resolver: Resolver; recorder: Recorder; limits: AccountLimits; publicUrl(): string },
): Inbound {
  const { config, log, tokens, onStop } = base;
  const parser = createInboundParser(log, config.hostname);
  const inbound = createInbound(base, { recorder, resolver, tokens, limits, parser, publicUrl });
  onStop(() => inbound.background.stop());
  return inbound;
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
