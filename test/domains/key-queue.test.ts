import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { isRefusal } from '../../src/core/refusal.ts';
import { createKeyQueue, MAX_KEYS, MAX_KEYS_PER_ACCOUNT } from '../../src/domains/key-queue.ts';
import { generateDkimKey } from '../../src/mail/dkim.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { openWriteAheadLog } from '../../src/store/database/write-ahead-log.ts';
import { createWriter } from '../../src/store/database/writer.ts';
import { createTables } from '../../src/store/tables.ts';
import { builtThread } from '../support/built-thread.ts';
import { fixedKey } from '../support/rsa-keys.ts';
import { startDomains } from './setup.ts';

/** The registrations generate RSA keys, which takes seconds on a busy machine. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const turn = () => new Promise(setImmediate);

/** A key queue whose keys are generated when the test finishes them. */
function start() {
  const running: { finish(): void; fail(error: Error): void }[] = [];
  const queue = createKeyQueue(
    () =>
      new Promise((resolve, reject) => {
        running.push({ finish: () => resolve(fixedKey(0)), fail: reject });
      }),
  );
  const done: string[] = [];
  const ask = (accountId: string, name = accountId) =>
    queue.generate(accountId).then(
      (key) => done.push(isRefusal(key) ? `${name}: ${key.code}` : name),
      (error: Error) => done.push(`${name}: ${error.message}`),
    );
  const finishNext = async () => {
    running.shift()?.finish();
    await turn();
  };
  return { queue, running, done, ask, finishNext };
}

describe('the key queue', () => {
  it('generates one key at a time', async () => {
    const { running, done, ask, finishNext } = start();
    void ask('one', 'first');
    void ask('two', 'second');
    await turn();
    expect(running).toHaveLength(1);
    await finishNext();
    expect([done, running.length]).toEqual([['first'], 1]);
    await finishNext();
    expect([done, running.length]).toEqual([['first', 'second'], 0]);
  });

  it('alternates between accounts and background work', async () => {
    const { queue, done, ask, finishNext } = start();
    for (let n = 1; n <= 5; n++) void ask('noisy', `noisy ${n}`);
    void queue.generateInBackground().then(() => done.push('background'));
    void ask('quiet');
    for (let n = 0; n < 7; n++) await finishNext();
    expect(done).toEqual(['noisy 1', 'noisy 2', 'background', 'quiet', 'noisy 3', 'noisy 4', 'noisy 5']);
  });

  it('refuses an account at its limit until one of its keys is generated', async () => {
    const { done, ask, finishNext } = start();
    for (let n = 0; n < MAX_KEYS_PER_ACCOUNT; n++) void ask('noisy');
    await ask('noisy', 'one more');
    expect(done).toEqual(['one more: RATE_LIMITED']);
    await finishNext();
    void ask('noisy');
    await turn();
    expect(done).toEqual(['one more: RATE_LIMITED', 'noisy']);
  });

  it('refuses with the limit and the time to retry', async () => {
    const { queue } = start();
    for (let n = 0; n < MAX_KEYS_PER_ACCOUNT; n++) void queue.generate('noisy');
    expect(await queue.generate('noisy')).toMatchObject({
      status: 429,
      message: expect.stringContaining('Limit of 8 DKIM keys per account'),
      extras: { retryAfter: 5 },
    });
  });

  it('refuses all accounts with 503 at the total limit', async () => {
    const { queue } = start();
    const accounts = MAX_KEYS / MAX_KEYS_PER_ACCOUNT;
    for (let n = 0; n < MAX_KEYS; n++) void queue.generate(`account ${n % accounts}`);
    expect(await queue.generate('another')).toMatchObject({ status: 503, extras: { retryAfter: 5 } });
  });

  it('continues after a key that failed', async () => {
    const { running, done, ask, finishNext } = start();
    void ask('one');
    void ask('two');
    running.shift()?.fail(new Error('no entropy'));
    await turn();
    await finishNext();
    expect(done).toEqual(['one: no entropy', 'two']);
  });
});

describe('300 simultaneous registrations by one account', () => {
  it("do not delay another account's commit, and are refused beyond the limit", async () => {
    const { dir, domains, tables } = await startDomains({ generateKey: generateDkimKey });
    const db = openDatabase(dir, { busyTimeoutMs: 0 });
    const writeAheadLog = openWriteAheadLog(db, { script: builtThread('store/database/flush-thread.ts') });
    const writer = createWriter(db, createTables(db), { writeAheadLog });
    onTestFinished(async () => {
      await writer.close();
      await writeAheadLog.close();
      db.close();
    });
    await writer.run(({ settings }) => settings.put('warm', 'up'));

    let registered = 0;
    const answers = Array.from({ length: 300 }, async (_, n) => {
      const answer = await domains.register('acct_one', { domain: `d${n}.example`, useCaseId: 'tx-local' });
      if (!isRefusal(answer)) registered++;
      return isRefusal(answer) ? answer.code : 'registered';
    });
    // A send of another account is a commit with a flush; in libuv's pool it would wait for all 300 keys.
    await writer.run(({ settings }) => settings.put('send', 'accepted'));
    expect(registered).toBeLessThan(MAX_KEYS_PER_ACCOUNT);
    const codes = await Promise.all(answers);
    expect(codes.filter((code) => code === 'registered')).toHaveLength(MAX_KEYS_PER_ACCOUNT);
    expect(codes.filter((code) => code === 'RATE_LIMITED')).toHaveLength(300 - MAX_KEYS_PER_ACCOUNT);
    expect(tables.domains.list('acct_one')).toHaveLength(MAX_KEYS_PER_ACCOUNT);
  });
});
