import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createLog } from '../../../src/core/log.ts';
import type { FeedEvent } from '../../../src/events/feed.ts';
import {
  createEventStreams,
  MAX_STREAMS_OF_ACCOUNT,
  MAX_STREAMS_OF_PERSON,
  MAX_STREAMS_OF_SESSION,
} from '../../../src/http/console/event-stream.ts';
import { startConsole, type TestBrowser, type TestConsole } from './harness.ts';

let test: TestConsole;
const open: AbortController[] = [];
beforeEach(async () => {
  test = await startConsole();
});
afterEach(async () => {
  for (const controller of open.splice(0)) controller.abort();
  await test.stop();
});

interface OpenStream {
  status: number;
  text(): string;
  ended: Promise<void>;
}

/** Opens the stream of an account as the application does. */
async function stream(browser: TestBrowser, account: string): Promise<OpenStream> {
  const controller = new AbortController();
  open.push(controller);
  const response = await fetch(`${test.base}/console/stream?account=${account}`, {
    headers: { ...browser.credentials(), Accept: 'text/event-stream', 'Sec-Fetch-Site': 'same-origin' },
    signal: controller.signal,
  });
  let text = '';
  const ended = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk);
  })().catch(() => {});
  return { status: response.status, text: () => text, ended };
}

/** Commits an event of a domain. */
function record(account: string, id: string) {
  return test.writer.run((tx) =>
    tx.events.insert({
      event_id: id,
      account_id: account,
      kind: 'domain_verified',
      at: test.clock.now(),
      message_seq: null,
      domain_id: null,
      data: '{}',
    }),
  );
}

const ID = (number: number) => `evt_1769860800000_00000000000${number}`;

describe('the event stream', () => {
  it('has the events of the account as they are committed, and no others', async () => {
    const viewer = await test.member('viewer');
    await record(test.account, ID(1));
    const events = await stream(viewer, test.account);
    expect(events.status).toBe(200);
    await expect.poll(() => events.text()).toContain('event: hello');
    await record(test.other, ID(2));
    await record(test.account, ID(3));
    await expect.poll(() => events.text()).toContain('event: event');
    const data = [...events.text().matchAll(/event: event\ndata: (.*)\n\n/g)].map(([, json = '']) =>
      JSON.parse(json),
    );
    expect(data).toMatchObject([{ eventId: ID(3), accountId: test.account, event: 'domain_verified' }]);
  });

  it('is refused without a session, for other accounts, and from pages of other sites', async () => {
    const viewer = await test.member('viewer');
    expect((await stream(test.browser(), test.account)).status).toBe(401);
    expect((await stream(viewer, test.other)).status).toBe(403);
    const response = await fetch(`${test.base}/console/stream?account=${test.account}`, {
      headers: { ...viewer.credentials(), 'Sec-Fetch-Site': 'same-site' },
    });
    expect(response.status).toBe(403);
  });

  it('ends when the session ends', async () => {
    const viewer = await test.member('viewer');
    const events = await stream(viewer, test.account);
    await expect.poll(() => events.text()).toContain('event: hello');
    await viewer.delete('/console/session');
    test.clock.time += 15_000;
    await events.ended;
  });

  it('ends for members when the account is disabled', async () => {
    const viewer = await test.member('viewer');
    const events = await stream(viewer, test.account);
    await expect.poll(() => events.text()).toContain('event: hello');
    await test.accounts.setStatus(test.account, 'disabled');
    test.clock.time += 15_000;
    await events.ended;
  });

  it('does not extend the session', async () => {
    const viewer = await test.member('viewer');
    const seenAt = () =>
      test.tables.consoleSessions.ofPerson(test.tables.people.list(1)[0]?.person_id ?? '', 1)[0]?.seen_at;
    const before = seenAt();
    test.clock.time += 3_600_000;
    const events = await stream(viewer, test.account);
    await expect.poll(() => events.text()).toContain('event: hello');
    await test.writer.durable();
    expect(seenAt()).toBe(before);
  });

  it('leaves connections of the browser for requests', async () => {
    const viewer = await test.member('viewer');
    for (let times = 0; times < MAX_STREAMS_OF_SESSION; times++)
      expect((await stream(viewer, test.account)).status).toBe(200);
    const refused = await stream(viewer, test.account);
    expect(refused.status).toBe(429);
    await expect.poll(() => refused.text()).toContain('This browser has 3 event streams');
    open.shift()?.abort();
    await expect.poll(async () => (await stream(viewer, test.account)).status).toBe(200);
    // Browsers have six connections to a host.
    expect(MAX_STREAMS_OF_SESSION).toBeLessThan(5);
  });

  it('sends a reset instead of more than 100 events', async () => {
    const viewer = await test.member('viewer');
    const events = await stream(viewer, test.account);
    await expect.poll(() => events.text()).toContain('event: hello');
    await test.writer.run((tx) => {
      for (let number = 0; number < 150; number++)
        tx.events.insert({
          event_id: `evt_1769860800000_${String(number).padStart(12, '0')}`,
          account_id: test.account,
          kind: 'domain_verified',
          at: test.clock.now(),
          message_seq: null,
          domain_id: null,
          data: '{}',
        });
    });
    await expect.poll(() => events.text()).toContain('event: reset');
    expect(events.text()).not.toContain('event: event');
  });
});

it('a client that does not read is disconnected, and no longer counts', async () => {
  let seq = 0;
  const streams = createEventStreams(
    { clock: { now: () => 0 }, log: createLog({ level: 'silent', hashAddresses: false }) },
    {
      intervalMs: 1,
      nextSeq: () => seq + 1,
      // Sound: the streams only serialize events.
      read: async () => [{ seq: ++seq, event: { eventId: 'x'.repeat(64 * 1024) } as FeedEvent }],
    },
  );
  // A response without a connection, which stores what is written.
  const open = (_: unknown, number: number) => {
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    const sessionId = `session_${number}`;
    const options = {
      accountId: 'acct_one',
      personId: 'person_1',
      operator: false,
      sessionId,
      response,
      isAllowed: () => true,
    };
    return { response, shortage: streams.open(options) };
  };
  const all = Array.from({ length: MAX_STREAMS_OF_PERSON }, open);
  expect(open(null, MAX_STREAMS_OF_PERSON).shortage).toBe('person');
  await expect.poll(() => all.map(({ response }) => response.destroyed)).not.toContain(false);
  expect(all.every(({ response }) => response.writableLength < 512 * 1024)).toBe(true);
  expect(open(null, 0).shortage).toBeNull();
  await streams.stop();
});

it('sends no event to a person who may no longer read the account', async () => {
  let seq = 0;
  const clock = { now: () => 0 };
  const streams = createEventStreams(
    { clock, log: createLog({ level: 'silent', hashAddresses: false }) },
    {
      intervalMs: 1,
      nextSeq: () => seq + 1,
      // Sound: the streams only serialize events.
      read: async () => [{ seq: ++seq, event: { eventId: `evt_${seq}` } as FeedEvent }],
    },
  );
  let isAllowed = true;
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  const written: string[] = [];
  vi.spyOn(response, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  const who = { accountId: 'acct_one', personId: 'person_1', sessionId: 'session_1', operator: false };
  streams.open({ ...who, response, isAllowed: () => isAllowed });
  await expect.poll(() => written.join('')).toContain('evt_1');
  isAllowed = false;
  const before = written.length;
  // No heartbeat: the clock stands still.
  await expect.poll(() => response.writableEnded).toBe(true);
  expect(written).toHaveLength(before);
  await streams.stop();
});

it('an account has a share of the streams, which leaves some for other accounts and for operators', async () => {
  const streams = createEventStreams(
    { clock: { now: () => 0 }, log: createLog({ level: 'silent', hashAddresses: false }) },
    {
      nextSeq: () => 1,
      read: async () => [],
    },
  );
  let number = 0;
  const open = (accountId: string, operator = false) => {
    const id = ++number;
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    const who = { personId: `person_${id}`, sessionId: `session_${id}`, operator };
    return { response, shortage: streams.open({ accountId, ...who, response, isAllowed: () => true }) };
  };
  const all = Array.from({ length: 70 }, () => open('acct_one'));
  expect(all.filter(({ shortage }) => shortage === null)).toHaveLength(MAX_STREAMS_OF_ACCOUNT);
  expect(all.at(-1)?.shortage).toBe('account');
  expect(open('acct_two').shortage).toBeNull();
  expect(open('acct_one', true).shortage).toBeNull();
  // Many accounts together leave streams for operators.
  for (let account = 0; account < 250; account++) open(`acct_${account}`);
  expect(open('acct_new').shortage).toBe('pool');
  expect(open('acct_new', true).shortage).toBeNull();
  all[0]?.response.emit('close');
  expect(open('acct_one').shortage).toBeNull();
  await streams.stop();
});
