import { expect } from 'vitest';
import type { MessageData } from '../../support/api-client.ts';
import type { RunningScenario } from './run.ts';
import type { ExpectedAttempt, ExpectedMessage, Scenario } from './scenario.ts';

/** A session of an attempt as the API presents it. */
interface SessionData {
  host: string;
  address: string;
  tls: { protocol: string; verified: boolean; policy: string } | null;
  stage: string;
  reply: { code: number; enhanced: string | null; text: string } | null;
  error: string | null;
}

interface AttemptData {
  action: ExpectedAttempt['action'];
  classification?: string;
  reply: { code: number; enhanced: string | null; text: string };
  sessions: SessionData[];
}

const SPREAD = 0.1;

/** Compares both ends: what the API accepted and recorded, and what the hosts received. */
export async function checkLedger(run: RunningScenario, scenario: Scenario): Promise<void> {
  const users = Object.keys(scenario.messages);
  expect([...run.sent.keys()], 'accepted messages').toEqual(users);
  const accepted = (await Promise.all(run.hosts.map((host) => host.received()))).flat();
  const recipients = new Set<string>();
  for (const [user, expected] of Object.entries(scenario.messages)) {
    const message = await run.message(user);
    checkMessage(run, user, message, expected);
    recipients.add(message.recipient);
    const copies = accepted.filter(({ to }) => to.join() === message.recipient);
    expect(copies.length, `copies of ${user} that hosts accepted`).toBe(
      expected.accepted ?? (expected.status === 'delivered' ? 1 : 0),
    );
    // Copies of one message, not several messages.
    expect(new Set(copies.map(({ raw }) => idOf(raw))).size).toBe(Math.min(copies.length, 1));
  }
  const others = accepted.filter(({ to }) => !recipients.has(to.join()));
  expect(others, 'messages to nobody').toEqual([]);
  for (const [label, transcripts] of Object.entries(scenario.connections ?? {}))
    expect(transcriptsOf(run, label), `connections to ${label}`).toEqual(transcripts);
  expect(await suppressedUsers(run), 'suppressed recipients').toEqual(
    [...(scenario.suppressed ?? [])].sort(),
  );
}

function checkMessage(
  run: RunningScenario,
  user: string,
  message: MessageData,
  expected: ExpectedMessage,
): void {
  const attempts = message.timeline.filter(({ type }) => type === 'attempt');
  const events = message.timeline.filter(({ type }) => type === 'event');
  // The whole story in one comparison, so that a failure shows all of it.
  const story = attempts.map((entry, n) => attemptText(attemptOf(run, entry), expected.attempts[n]));
  expect([...story, message.status], `story of ${user}`).toEqual([
    ...expected.attempts.map((attempt) => attemptText(attempt, attempt)),
    expected.status,
  ]);
  expect(message.attempts, `attempts of ${user}`).toBe(expected.attempts.length);
  expect(
    events.map(({ event }) => event),
    `events of ${user}`,
  ).toEqual(expected.events ?? usualEvents(expected));
  if (expected.lastEvent !== undefined)
    expect(events.at(-1), `last event of ${user}`).toMatchObject(expected.lastEvent);
  if (expected.tls !== undefined)
    expect(attempts.at(-1)?.['sessions'], `encryption of ${user}`).toEqual([
      expect.objectContaining({ tls: expect.objectContaining(expected.tls) }),
    ]);
  const delays = events.filter(({ event }) => event === 'email_delayed');
  for (const [n, { wait }] of expected.attempts.entries()) {
    if (wait === undefined) continue;
    const delay = delays[n];
    const announced = Date.parse(String(delay?.['nextAttemptAt'])) - Date.parse(delay?.timestamp ?? '');
    const [least, usual] = typeof wait === 'number' ? [wait * (1 - SPREAD), wait] : [wait.named, wait.named];
    expect(announced, `wait of ${user} after attempt ${n + 1}`).toBeGreaterThanOrEqual(least);
    expect(announced, `wait of ${user} after attempt ${n + 1}`).toBeLessThanOrEqual(usual * (1 + SPREAD));
  }
}

function attemptOf(run: RunningScenario, entry: object): ExpectedAttempt {
  // The documented shape of the API's attempts.
  const { action, classification, reply, sessions } = entry as AttemptData;
  return {
    action,
    reply: [reply.code, reply.enhanced].filter((part) => part !== null).join(' '),
    classification: classification ?? '',
    sessions: sessions.map((session) => sessionText(run, session)),
  };
}

/** The fields of an attempt that `like` has, or all of them, as one text. */
function attemptText(attempt: ExpectedAttempt, like: ExpectedAttempt = attempt): string {
  const { action, reply, classification, sessions } = attempt;
  const parts = [`${action} ${reply}`];
  if (like.classification !== undefined) parts.push(classification ?? '');
  if (like.sessions !== undefined) parts.push(...(sessions ?? []));
  return parts.join(' | ');
}

/**
 * A session in one line: host, the phase that it reached, the code of the reply that ended it or the error, and the
 * encryption: `mx dot 250`, `mx rcpt 450 TLS`, `mx dot 250 TLS verified`, `mx connect: connection refused`.
 */
function sessionText(run: RunningScenario, session: SessionData): string {
  const { host, stage: phase, reply, error, tls } = session;
  const label = host.endsWith(`.${run.domain}`) ? host.slice(0, -run.domain.length - 1) : host;
  const encryption = tls === null ? '' : tls.verified ? ' TLS verified' : ' TLS';
  const code = reply === null ? '' : ` ${reply.code}`;
  // The port is that of the family.
  const cause = error?.replaceAll(`_${run.env.port}._tcp.`, '_25._tcp.');
  return `${label} ${phase}${code}${encryption}${cause === undefined ? '' : `: ${cause}`}`;
}

function usualEvents({ attempts, status }: ExpectedMessage): string[] {
  const delays = attempts.filter(({ action }) => action === 'defer').map(() => 'email_delayed');
  // The last attempt of a message that expires has no other event than the failure.
  if (status === 'failed') delays.pop();
  const last = status === 'cancelled' ? 'email_failed' : `email_${status}`;
  return [...(attempts.length > 0 ? ['email_sent'] : []), ...delays, last];
}

function transcriptsOf({ hosts }: RunningScenario, label: string): string[] {
  const sink = hosts.find((host) => host.label === label)?.sink;
  return sink?.sessions.map(({ verbs }) => verbs.join(' ')) ?? [];
}

async function suppressedUsers({ env, domain, sent }: RunningScenario): Promise<string[]> {
  const users: string[] = [];
  for (const user of sent.keys()) {
    const path = `/web-setup/suppressions?email=${encodeURIComponent(`${user}@${domain}`)}`;
    const { data } = await env.api.get<{ suppressions: unknown[] }>(path);
    if (data.suppressions.length > 0) users.push(user);
  }
  return users.sort();
}

/** The unfolded value of X-Postrider-Id, which differs for each message. */
function idOf(raw: string): string {
  const header = raw.slice(0, raw.indexOf('\r\n\r\n'));
  const value = /^X-Postrider-Id:((?:.|\r\n[ \t])*)/im.exec(header)?.[1] ?? '';
  if (value === '') throw new Error('a received message has no X-Postrider-Id');
  return value.replace(/\s/g, '');
}
