import { describe, expect, it } from 'vitest';
import { HOUR } from '../../src/core/clock.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { createQueuedMail } from '../../src/sending/queued-mail.ts';
import type { MessageRow, MessageStatus } from '../../src/store/messages/messages.ts';
import { HELD, type QueueKey } from '../../src/store/messages/queue.ts';
import { enqueue, insertAccount, startStore } from '../support/store.ts';

function start(obstacle?: () => string | null) {
  const store = startStore();
  const { tables, clock } = store;
  insertAccount(tables, 'acct_two', clock.now());
  const announced: QueueKey[] = [];
  const mail = createQueuedMail(
    { ...store, ...(obstacle === undefined ? {} : { obstacle }) },
    { ...store, ...(obstacle === undefined ? {} : { obstacle }), announce: (key) => announced.push(key) },
  );
  /** A message in a state, with the queue row that belongs to it. */
  const inState = (state: string, columns: Partial<MessageRow> = {}): MessageRow => {
    const { status, lease = null, dueIn = 0 } = stateOf(state);
    const message = enqueue(tables, clock.now(), { ...columns, dueAt: clock.now() + dueIn });
    tables.messages.setState(message.seq, status, clock.now(), null, null);
    if (lease !== null) tables.queue.lease(message.seq, lease);
    if (!WAITING.includes(status)) tables.queue.remove(message.seq);
    return { ...message, status };
  };
  return { ...store, announced, mail, inState };
}

const WAITING: MessageStatus[] = ['queued', 'sending', 'deferred'];
interface QueueState {
  status: MessageStatus;
  lease?: number;
  /** ms. */
  dueIn?: number;
}

const STATES = new Map<string, QueueState>([
  ['queued', { status: 'queued' }],
  ['queued for later', { status: 'queued', dueIn: HOUR }],
  ['taken, not yet sent', { status: 'sending', lease: 7 }],
  ['given back by a site that cannot be reached', { status: 'sending' }],
  ['deferred', { status: 'deferred', dueIn: HOUR }],
  ['delivered', { status: 'delivered' }],
  ['bounced', { status: 'bounced' }],
  ['failed', { status: 'failed' }],
  ['complained', { status: 'complained' }],
]);

function stateOf(name: string): QueueState {
  const state = STATES.get(name);
  if (state === undefined) throw new Error(`there is no state ${name}`);
  return state;
}

function codeOf(answer: unknown): string {
  return isRefusal(answer) ? answer.code : 'done';
}

describe('cancelling a message that is', () => {
  it.each([
    ['queued', 'done'],
    ['queued for later', 'done'],
    ['deferred', 'done'],
    ['given back by a site that cannot be reached', 'done'],
    ['taken, not yet sent', 'INVALID_STATE'],
    ['delivered', 'INVALID_STATE'],
    ['bounced', 'INVALID_STATE'],
    ['failed', 'INVALID_STATE'],
    ['complained', 'INVALID_STATE'],
  ])('%s: %s', async (state, expected) => {
    const { mail, inState, tables } = start();
    const before = inState(state);
    const held = tables.queue.get(before.seq);
    expect(codeOf(await mail.cancel('acct_one', before.message_id))).toBe(expected);
    const after = tables.messages.bySeq(before.seq);
    const events = tables.events.ofMessage(before.seq).map(({ kind, data }) => `${kind} ${data}`);
    if (expected === 'done') {
      expect(after?.status).toBe('cancelled');
      expect(tables.queue.get(before.seq)).toBeNull();
      expect(events).toEqual(['email_failed {"reason":"cancelled"}']);
    } else {
      expect(after?.status).toBe(before.status);
      expect(tables.queue.get(before.seq)).toEqual(held);
      expect(events).toEqual([]);
    }
  });
});

describe('retrying a message that is', () => {
  it.each([
    ['deferred', 'done'],
    ['queued', 'INVALID_STATE'],
    ['queued for later', 'INVALID_STATE'],
    ['given back by a site that cannot be reached', 'INVALID_STATE'],
    ['taken, not yet sent', 'INVALID_STATE'],
    ['delivered', 'INVALID_STATE'],
    ['bounced', 'INVALID_STATE'],
    ['failed', 'INVALID_STATE'],
    ['complained', 'INVALID_STATE'],
  ])('%s: %s', async (state, expected) => {
    const { mail, inState, tables, clock, announced } = start();
    const { seq, message_id } = inState(state);
    const before = tables.queue.get(seq);
    expect(codeOf(await mail.retry('acct_one', message_id))).toBe(expected);
    if (expected === 'done') {
      expect(tables.queue.get(seq)).toMatchObject({ due_at: clock.now(), ready: 1, lease: null });
      expect(announced).toMatchObject([{ account_id: 'acct_one', destination: 'example.net' }]);
    } else {
      expect(tables.queue.get(seq)).toEqual(before);
      expect(announced).toEqual([]);
    }
  });
});

describe('the report of a retry', () => {
  it.each<[what: string, obstacle: (() => string | null) | undefined, report: string]>([
    ['no reason is known', () => null, 'is due now and is tried immediately'],
    [
      'its site is suspended',
      () => 'the mail hosts of example.net cannot be reached; next attempt at 12:00',
      'is due now, but the mail hosts of example.net cannot be reached; next attempt at 12:00',
    ],
    [
      'delivery is another process',
      undefined,
      'is due now; the running daemon tries it within a second, or as soon as its destination can be reached',
    ],
  ])('%s', async (_, obstacle, report) => {
    const { mail, inState } = start(obstacle);
    const { message_id } = inState('deferred');
    expect(await mail.retry('acct_one', message_id)).toMatchObject({ report });
  });

  it.each([
    ['taken, not yet sent', 'The message is being sent'],
    ['queued', 'The message is due already and waits for its first attempt'],
    ['queued for later', 'The message is due at 2026-01-15T13:00:00.000Z and waits for its first attempt'],
    ['held', 'The message is held because its campaign is paused: resume the campaign to send it'],
    ['delivered', 'The message is delivered and no longer queued'],
  ])('when it is refused: %s', async (state, message) => {
    const { mail, inState, tables } = start();
    const { seq, message_id } = inState(state === 'held' ? 'queued' : state);
    if (state === 'held') tables.queue.defer(seq, HELD);
    expect(await mail.retry('acct_one', message_id)).toMatchObject({ code: 'INVALID_STATE', message });
  });
});

describe('a message of another account', () => {
  it('is refused like one that does not exist, and is not changed', async () => {
    const { mail, inState, tables } = start();
    const { seq, message_id } = inState('deferred', { account_id: 'acct_two' });
    const before = tables.queue.get(seq);
    for (const id of [message_id, 'msg_1_unknown']) {
      for (const answer of [await mail.cancel('acct_one', id), await mail.retry('acct_one', id)])
        expect(answer).toMatchObject({
          code: 'MESSAGE_NOT_FOUND',
          message: expect.stringMatching(/^There is no message msg_/),
        });
    }
    expect(tables.queue.get(seq)).toEqual(before);
  });

  it('can be changed by the operator', async () => {
    const { mail, inState } = start();
    const { message_id } = inState('deferred', { account_id: 'acct_two' });
    expect(codeOf(await mail.retry(null, message_id))).toBe('done');
    expect(codeOf(await mail.cancel(null, message_id))).toBe('done');
  });
});
