import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createContext } from '../../src/cli/context.ts';
import type { Box } from '../../src/store/kept-mail.ts';
import { createShell } from './run.ts';

let shell: ReturnType<typeof createShell>;
beforeEach(() => {
  shell = createShell();
});
afterEach(() => shell.remove());

async function keep(box: Box, raw: string): Promise<void> {
  const context = createContext(() => shell.file);
  const { writer } = await context.open();
  await writer.run((tx) =>
    tx.keptMail.insert({
      box,
      kind: 'unknown',
      recipient: `${box}@mx.example.com`,
      sender: 'bob@example.org',
      remote_address: '192.0.2.1',
      network: '',
      message_seq: null,
      received_at: Date.UTC(2026, 0, 15),
      raw: Buffer.from(raw),
    }),
  );
  await context.close();
}

describe('postrider inbox', () => {
  it('lists received mail of one box or all, newest first', async () => {
    await keep('postmaster', 'Subject: one\r\n\r\nx');
    await keep('abuse', 'Subject: two\r\n\r\nx');
    expect(await shell.json('inbox', 'list', '--json')).toMatchObject([{ number: 2 }, { number: 1 }]);
    expect(await shell.json('inbox', 'list', '--box', 'postmaster', '--json')).toEqual([
      {
        number: 1,
        receivedAt: '2026-01-15T00:00:00.000Z',
        box: 'postmaster',
        kind: 'unknown',
        sender: 'bob@example.org',
        recipient: 'postmaster@mx.example.com',
        remoteAddress: '192.0.2.1',
        size: 17,
        message: null,
      },
    ]);
  });

  it('notes that a list is not complete', async () => {
    await keep('postmaster', 'Subject: one\r\n\r\nx');
    await keep('abuse', 'Subject: two\r\n\r\nx');
    const { err } = await shell.run('inbox', 'list', '--limit', '1');
    expect(err).toBe('postrider: There are more than 1: --limit shows up to 1000');
    expect(await shell.json('inbox', 'list', '--limit', '1', '--json')).toMatchObject([{ number: 2 }]);
    expect((await shell.run('inbox', 'list', '--limit', '2')).err).toBe('');
  });

  it('shows a message without control characters', async () => {
    await keep('postmaster', 'Subject: hi\r\n\r\nbye\u001b]0;owned\u0007\u202e!');
    expect((await shell.run('inbox', 'show', '1')).out).toBe('Subject: hi\n\nbye␣]0;owned␣␣!');
  });

  it.each([
    ['an unknown number', ['show', '7'], 1, 'There is no message 7'],
    ['an invalid number', ['show', 'x'], 1, 'There is no message x'],
    ['an unknown box', ['list', '--box', 'spam'], 2, 'Allowed choices are postmaster'],
  ])('rejects %s', async (_, args, status, words) => {
    const outcome = await shell.run('inbox', ...args);
    expect(outcome.status).toBe(status);
    expect(outcome.err).toContain(words);
  });
});
