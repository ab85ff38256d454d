import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Child, startChild } from '../support/child.ts';
import { eventually } from '../support/eventually.ts';
import { requirePrograms } from '../support/required-programs.ts';

/*
 * `postrider demo` as a newcomer meets it: it tells its story, stays up, and the commands that it prints are
 * pasted into a shell.
 *
 *   postrider demo: private DNS, daemon, receiving mail server, shop (webhooks), all in one process
 *        ▲
 *        └──HTTP── bash, curl
 */
const PROGRAM = new URL('../../dist/main.js', import.meta.url).pathname;
const required = requirePrograms('curl');

/** By which of its fields an answer is known. */
const WHAT = new Set(['messageId', 'jobId', 'domains', 'messages', 'events', 'deliveries']);

let folder: string;
let demo: Child;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postrider-e2e-demo-'));
  // A port of the system's choice; its data directory where this test can look for it.
  demo = startChild(process.execPath, ['--enable-source-maps', PROGRAM, 'demo', '--port', '0'], {
    env: { PATH: process.env['PATH'], TMPDIR: folder },
  });
  await eventually('the story to be told', () => {
    if (!demo.running) throw new Error(`the demo ended: ${demo.output}`);
    return demo.output.includes('Ctrl-C ends the demo');
  });
});
afterAll(async () => {
  if (demo?.running) await demo.kill('SIGKILL');
  if (folder) await rm(folder, { recursive: true, force: true });
});

const lines = () => demo.output.split('\n');

/** What stands under the title of a step. */
function step(title: string): string[] {
  const all = lines();
  const begin = all.findIndex((line) => /^\d+\. /.test(line) && line.includes(title));
  expect(begin, `no step “${title}” in ${demo.output}`).not.toBe(-1);
  const end = all.indexOf('', begin);
  return all.slice(begin + 1, end).map((line) => line.trim());
}

describe('the demo', () => {
  it('tells the main job, step by step', () => {
    expect(lines().flatMap((line) => /^\d+\. (.*)/.exec(line)?.[1] ?? [])).toEqual([
      'An account, with a key for each purpose',
      'The shop asks to be told of everything that happens, by webhook',
      'The domain shop.test is registered, for orders and for newsletters',
      'The records are published, and verified over DNS',
      'A transactional mail is sent',
      'Zoë follows the link in it',
      'What is known about it',
      'A newsletter needs people who agreed',
      'A marketing mail is sent',
      'Zoë presses "Unsubscribe" in her mail program',
      'A mail to nobody@inbox.test, whom the receiving server does not know',
      'A mail to gone@inbox.test, which is taken at first and comes back later',
      'What the shop knows in the end',
    ]);
  });

  it.each([
    ['The records are published', ['domain_verified', 'domain_verified'], 'shop.test'],
    ['A transactional mail', ['email_sent', 'email_delivered'], 'zoe@inbox.test'],
    ['Zoë follows the link', ['email_clicked'], 'zoe@inbox.test'],
    ['A marketing mail', ['email_sent', 'email_delivered'], 'zoe@inbox.test'],
    ['A mail to gone@', ['email_sent', 'email_delivered', 'email_bounced'], 'gone@inbox.test'],
  ])('%s…: shows the webhooks arrive', (title, kinds, whom) => {
    const told = step(title).flatMap((line) => /^the shop is told: (.*) \((.*)\)$/.exec(line) ?? []);
    // Webhooks promise no order.
    expect(told[1]?.split(', ').toSorted()).toEqual(kinds.toSorted());
    expect(told[2]).toBe(whom);
  });

  it('lets one click end the newsletter', () => {
    expect(step('Zoë presses')).toEqual([
      'it sends List-Unsubscribe=One-Click, as it would with the https address of a server on the Internet:',
      expect.stringMatching(/^POST http:\/\/link\.shop\.test:\d+\/u\/\S+ -> 200$/),
      'the shop is told: email_unsubscribed (zoe@inbox.test)',
      'POST /marketing/send -> 403',
      expect.stringContaining('RECIPIENT_UNSUBSCRIBED'),
      'the shop is told: email_suppressed (zoe@inbox.test)',
    ]);
  });

  it('loses no event on the way to the webhook', () => {
    expect(step('What the shop knows').at(-1)).toBe(
      '16 events happened; the shop was told of each, by a call with a good signature',
    );
  });

  it.skipIf(required.missing)(`prints commands that work as they are${required.reason}`, async () => {
    const all = lines();
    const first = all.findIndex((line) => line.startsWith('  export BASE='));
    const last = all.findIndex((line) => line.startsWith('Mail to any address'));
    const commands = all.slice(first, last).join('\n');
    const { stdout } = await promisify(execFile)('bash', ['-ec', commands]);
    // One answer stands right after the other.
    const answers = stdout.split(/(?<=\})(?=\{"success")/).map((answer) => JSON.parse(answer));
    expect(
      answers.map(({ success, data }) => [success, Object.keys(data).find((key) => WHAT.has(key))]),
    ).toEqual([
      [true, 'messageId'],
      [true, 'jobId'],
      [true, 'domains'],
      [true, 'messages'],
      [true, 'events'],
      [true, 'deliveries'],
    ]);
    const about = (text: string) => demo.output.split(text).length - 1;
    await eventually('both mails to arrive', () => about('-> you@example.com') === 2);
    await eventually('the shop to know', () => about('told: email_delivered (you@example.com)') === 2);
  });

  it('ends with Ctrl-C, and leaves nothing behind', async () => {
    expect(await demo.kill('SIGINT')).toEqual({ code: 0, signal: null });
    expect(demo.output.trimEnd()).toMatch(/Good-bye\.$/);
    expect(await readdir(folder)).toEqual([]);
  });
});
