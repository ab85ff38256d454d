import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../../../src/store/database/database.ts';
import { createTables } from '../../../src/store/tables.ts';
import { createShell } from '../run.ts';

let shell: ReturnType<typeof createShell>;
beforeEach(() => {
  shell = createShell();
});
afterEach(() => shell.remove());

describe('replies unclassified', () => {
  it('lists the most frequent replies', async () => {
    expect(await shell.run('replies', 'unclassified')).toMatchObject({
      status: 0,
      err: 'No reply is unclassified',
    });
    const db = openDatabase(shell.file.replace('postrider.toml', 'data'));
    const row = { code: 451, enhanced: '', phase: 'rcpt', host: '', first_at: 0, last_at: 1000 };
    createTables(db).unclassifiedReplies.add([
      { ...row, text: 'mumble #', replies: 2 },
      { ...row, text: 'grumble', replies: 7, enhanced: '4.9.9', host: 'mx.test' },
    ]);
    db.close();
    expect(await shell.json('replies', 'unclassified', '--json')).toEqual([
      {
        replies: 7,
        code: 451,
        enhancedCode: '4.9.9',
        phase: 'rcpt',
        text: 'grumble',
        host: 'mx.test',
        firstAt: '1970-01-01T00:00:00.000Z',
        lastAt: '1970-01-01T00:00:01.000Z',
      },
      expect.objectContaining({ replies: 2, enhancedCode: null, host: null }),
    ]);
    expect(await shell.json('replies', 'unclassified', '--json', '--limit', '1')).toHaveLength(1);
  });
});

describe('replies classify', () => {
  const classified = (...args: string[]) => shell.json('replies', 'classify', ...args, '--json');

  it('shows what a reply means, by the built-in rules and by those of the configuration', async () => {
    expect(await classified('421 4.7.28 unusual rate of unsolicited mail', '--phase', 'dot')).toMatchObject({
      decidedBy: 'built-in rule',
      meaning: 'sender rate limit',
      action: 'defer',
      scope: 'sender',
    });
    expect(await classified('451 mumble, try again in 10 minutes')).toMatchObject({
      decidedBy: 'no rule',
      meaning: null,
      classification: 'unclassified',
      retryAfterSeconds: 600,
    });
    const rule = '[[delivery.replies]]\ntext = "mumble"\nhost = "mx.test"\nmeaning = "greylisted"\n';
    writeFileSync(shell.file, readFileSync(shell.file, 'utf8') + rule);
    expect(await classified('451 mumble', '--host', 'mx.test')).toMatchObject({
      decidedBy: 'delivery.replies',
      greylisted: true,
    });
    expect(await classified('451 mumble')).toMatchObject({ decidedBy: 'no rule' });
  });

  it('rejects text that is not a reply', async () => {
    expect(await shell.run('replies', 'classify', 'mumble')).toMatchObject({
      status: 2,
      err: expect.stringContaining('Must begin with the reply code'),
    });
  });
});
