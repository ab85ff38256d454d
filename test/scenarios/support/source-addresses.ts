import { expect } from 'vitest';
import { DAY, iso } from '../../../src/core/clock.ts';
import type { ScenarioRun } from './run.ts';

export const NEW_ADDRESS = '127.0.0.11';
export const WARM_ADDRESS = '127.0.0.12';

export const WARM = { name: 'warm', address: WARM_ADDRESS };

/**
 * Advances the time to the next day (UTC), on which the warm-up of `NEW_ADDRESS` starts. `schedule`: its quota of each day;
 * `others`: further entries of its pool; `more`: further settings. Each connection carries one message, so that a source
 * address is chosen for each message.
 */
export async function startWarmup(
  run: ScenarioRun,
  schedule: readonly number[],
  others: readonly object[] = [],
  more: Record<string, unknown> = {},
): Promise<void> {
  await run.env.advance(DAY - (run.env.clock.now() % DAY) + 1000);
  const started = iso(run.env.clock.now()).slice(0, 10);
  const entry = { name: 'new', address: NEW_ADDRESS, warmup: { started, days: schedule.length } };
  const settings = { 'delivery.warmup.schedule': schedule, ...more };
  await run.configure(addressSettings(run.domain, [entry, ...others], settings));
}

/** Settings with these entries of `delivery.egress`, behind NAT. */
export function addressSettings(
  domain: string,
  entries: readonly object[],
  more: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    'delivery.egress': entries.map((entry, index) => ({ publicAddress: `192.0.2.${25 + index}`, ...entry })),
    'delivery.shaping': [{ match: `mx.${domain}`, connections: 2, messagesPerConnection: 1 }],
    ...more,
  };
}

/** Numbers of the messages that a host accepted, by source address. */
export function sourcesAt({ sink }: ScenarioRun, host = 'mx'): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { remoteAddress, messages } of sink(host).sessions)
    if (messages > 0) counts[remoteAddress] = (counts[remoteAddress] ?? 0) + messages;
  return counts;
}

/** Expects a reason with this code, and with `text` in its text, in the explanation of the message to `user`. */
export async function expectReason(
  run: ScenarioRun,
  user: string,
  code: string,
  text: string,
): Promise<void> {
  const reasons = await run.explain(user);
  expect(reasons.map((reason) => `${reason.code}: ${reason.text}`)).toContainEqual(
    expect.stringMatching(new RegExp(`^${code}: .*${text}`)),
  );
}
