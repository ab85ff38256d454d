import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HOUR } from '../../src/core/clock.ts';
import { openDatabase } from '../../src/store/database.ts';
import type { MessageRow } from '../../src/store/messages.ts';
import { createTables, type Tables } from '../../src/store/tables.ts';
import { enqueue, insertAccount } from '../support/store.ts';
import { createShell } from './run.ts';

let shell: ReturnType<typeof createShell>;
beforeEach(() => {
  shell = createShell();
  store((tables) => insertAccount(tables, 'acct_one', 0));
});
afterEach(() => shell.remove());

/** What the daemon would have put there. */
function store<T>(work: (tables: Tables) => T): T {
  const db = openDatabase(join(dirname(shell.file), 'data'));
  try {
    return work(createTables(db));
  } finally {
    db.close();
  }
}

function deferred(): MessageRow {
  return store((tables) => {
    const message = enqueue(tables, Date.now(), { dueAt: Date.now() + HOUR });
    tables.messages.setState(message.seq, 'deferred', Date.now(), null, null);
    return message;
  });
}

describe('queue retry', () => {
  it('makes deferred messages due now', async () => {
    const messages = [deferred(), deferred()];
    const ids = messages.map(({ message_id }) => message_id);
    expect(await shell.run('queue', 'retry', ...ids)).toMatchObject({
      status: 0,
      out: ids
        .map(
          (id) =>
            `${id} is due now; the running daemon tries it within a second, or as soon as its destination can be reached`,
        )
        .join('\n'),
    });
    for (const { seq } of messages) expect(store((tables) => tables.queue.get(seq)?.ready)).toBe(1);
  });
});

describe('queue cancel', () => {
  it('calls off what waits, and says of the rest why not', async () => {
    const { message_id: id } = deferred();
    const first = await shell.run('queue', 'cancel', id, 'msg_none', '--json');
    expect(JSON.parse(first.out)).toMatchObject([{ messageId: id, status: 'cancelled' }]);
    expect(first).toMatchObject({ status: 1, err: 'postrider: msg_none: There is no such message' });
    expect(await shell.run('queue', 'cancel', id)).toMatchObject({
      status: 1,
      out: '',
      err: `postrider: ${id}: the message is cancelled: nothing of it waits any more`,
    });
    const events = store((tables) => tables.events.feed({ accountId: 'acct_one', afterSeq: 0, limit: 10 }));
    expect(events.map(({ kind, data }) => `${kind} ${data}`)).toEqual([
      'email_failed {"reason":"cancelled"}',
    ]);
  });
});
