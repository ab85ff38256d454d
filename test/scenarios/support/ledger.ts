import { expect } from 'vitest';
import type { MessageData } from '../../support/api-client.ts';
import type { RunningScenario } from './run.ts';
import type { ExpectedAttempt, ExpectedMessage, Scenario } from './scenario.ts';

/** A session of an attempt as the API returns it. */
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

/** Compares the messages that the API accepted and recorded, and those that the hosts received, with the expected ones. */
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
    // All copies are of the same message.
    expect(new Set(copies.map(({ raw }) => idOf(raw))).size).toBe(Math.min(copies.length, 1));
  }
  const others = accepted.filter(({ to }) => !recipients.has(to.join()));
  expect(others, 'accepted messages to other recipients').toEqual([]);
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
  // All attempts and the status in one comparison, so that a failure shows all of them.
  const recorded = attempts.map((entry, n) => attemptText(attemptOf(run, entry), expected.attempts[n]));
  expect([...recorded, message.status], `attempts and status of ${user}`).toEqual([
    ...expected.attempts.map((attempt) => attemptText(attempt, attempt)),
    expected.status,
  ]);
  expect(message.attempts, `attempts of ${user}`).toBe(expected.attempts.length);
  expect(
    events.map(({ event }) => event),
    `events of ${user}`,
  ).toEqual(expected.events ?? defaultEvents(expected));
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
    const [min, base] = typeof wait === 'number' ? [wait * (1 - SPREAD), wait] : [wait.named, wait.named];
    expect(announced, `wait of ${user} after attempt ${n + 1}`).toBeGreaterThanOrEqual(min);
    expect(announced, `wait of ${user} after attempt ${n + 1}`).toBeLessThanOrEqual(base * (1 + SPREAD));
  }
}

function attemptOf(run: RunningScenario, entry: object): ExpectedAttempt {
  // The documented fields of an attempt.
  const { action, classification, reply, sessions } = entry as AttemptData;
  return {
    action,
    reply: [reply.code, reply.enhanced].filter((part) => part !== null).join(' '),
    classification: classification ?? '',
    sessions: sessions.map((session) => sessionText(run, session)),
  };
}

/** The attempt as a string, with those optional fields that `like` has. */
function attemptText(attempt: ExpectedAttempt, like: ExpectedAttempt = attempt): string {
  const { action, reply, classification, sessions } = attempt;
  const parts = [`${action} ${reply}`];
  if (like.classification !== undefined) parts.push(classification ?? '');
  if (like.sessions !== undefined) parts.push(...(sessions ?? []));
  return parts.join(' | ');
}

/**
 * A session in one line: host, last phase, code of the last reply, encryption, error: `mx dot 250`, `mx rcpt 450 TLS`,
 * `mx dot 250 TLS verified`, `mx connect: connection refused`.
 */
function sessionText(run: RunningScenario, session: SessionData): string {
  const { host, stage: phase, reply, error, tls } = session;
  const label = host.endsWith(`.${run.domain}`) ? host.slice(0, -run.domain.length - 1) : host;
  const encryption = tls === null ? '' : tls.verified ? ' TLS verified' : ' TLS';
  const code = reply === null ? '' : ` ${reply.code}`;
  // The hosts of a family use its port in place of 25.
  const cause = error?.replaceAll(`_${run.env.port}._tcp.`, '_25._tcp.');
  return `${label} ${phase}${code}${encryption}${cause === undefined ? '' : `: ${cause}`}`;
}

function defaultEvents({ attempts, status }: ExpectedMessage): string[] {
  const delays = attempts.filter(({ action }) => action === 'defer').map(() => 'email_delayed');
  // The last attempt of a message that expires has no event but `email_failed`.
  if (status === 'failed') delays.pop();
  const last = status === 'cancelled' ? 'email_failed' : `email_${status}`;
  return [...(attempts.length > 0 ? ['email_sent'] : []), ...delays, last];
}

function transcriptsOf(run: RunningScenario, label: string): string[] {
  return run.sink(label).sessions.map(({ verbs }) => verbs.join(' '));
}

async function suppressedUsers(run: RunningScenario): Promise<string[]> {
  const users: string[] = [];
  for (const user of run.sent.keys()) {
    const { recipient } = await run.message(user);
    const path = `/web-setup/suppressions?email=${encodeURIComponent(recipient)}`;
    const { data } = await run.env.api.get<{ suppressions: unknown[] }>(path);
    if (data.suppressions.length > 0) users.push(user);
  }
  return users.sort();
}

/** The value of X-Postrider-Id without white space, which differs for each message. */
function idOf(raw: string): string {
  const header = raw.slice(0, raw.indexOf('\r\n\r\n'));
  const value = /^X-Postrider-Id:((?:.|\r\n[ \t])*)/im.exec(header)?.[1] ?? '';
  if (value === '') throw new Error('a received message has no X-Postrider-Id');
  return value.replace(/\s/g, '');
}
