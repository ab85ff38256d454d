import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Child, startChild } from '../support/child.ts';
import { eventually } from '../support/eventually.ts';
import { requirePrograms } from '../support/required-programs.ts';

/*
 * `postrider demo` as a new user of README.md runs it: it runs its steps, keeps running, and the printed commands are pasted into
 * a shell.
 *
 *   postrider demo: private DNS, daemon, receiving mail server, webhook receiver, all in one process
 *        ▲
 *        └──HTTP── bash, curl
 */
const PROGRAM = new URL('../../dist/main.js', import.meta.url).pathname;
const required = requirePrograms('curl');

/** Fields that identify a response. */
const KEYS = new Set(['messageId', 'messages', 'deliveries']);

let folder: string;
let demo: Child;

function startDemo(): Child {
  return startChild(process.execPath, ['--enable-source-maps', PROGRAM, 'demo', '--port', '0'], {
    env: { PATH: process.env['PATH'], TMPDIR: folder },
  });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postrider-e2e-demo-'));
  // Any free port; a temporary directory in which this test can find the data directory.
  demo = startDemo();
  await eventually('the steps to run', () => {
    if (!demo.running) throw new Error(`the demo ended: ${demo.output}`);
    return demo.output.includes('Press Ctrl-C to end the demo');
  });
});
afterAll(async () => {
  if (demo?.running) await demo.kill('SIGKILL');
  if (folder) await rm(folder, { recursive: true, force: true });
});

const lines = () => demo.output.split('\n');

/** Output lines of a step. */
function step(title: string): string[] {
  const all = lines();
  const begin = all.findIndex((line) => /^\d+\. /.test(line) && line.includes(title));
  expect(begin, `no step “${title}” in ${demo.output}`).not.toBe(-1);
  const end = all.indexOf('', begin);
  return all.slice(begin + 1, end).map((line) => line.trim());
}

describe('the demo', () => {
  it('runs all steps', () => {
    expect(lines().flatMap((line) => /^\d+\. (.*)/.exec(line)?.[1] ?? [])).toEqual([
      'Create an account with a key for each purpose',
      'Create a webhook for all events',
      'Add the domain shop.test for transactional and marketing mail',
      'Publish and verify the records',
      'Send a transactional message',
      'Follow the link',
      'Create a subscription group with consent',
      'Send a marketing message',
      'Unsubscribe with one click',
      'Send to unknown@inbox.test, an unknown user',
      'Compare events and webhook calls',
    ]);
  });

  it.each([
    ['Publish and verify', ['domain_verified', 'domain_verified'], 'shop.test'],
    ['Send a transactional', ['email_sent', 'email_delivered'], 'zoe@inbox.test'],
    ['Follow the link', ['email_clicked'], 'zoe@inbox.test'],
    ['Send a marketing', ['email_sent', 'email_delivered'], 'zoe@inbox.test'],
    ['Send to unknown@', ['email_sent', 'email_bounced'], 'unknown@inbox.test'],
  ])('%s…: prints the webhook calls', (title, types, subject) => {
    const calls = step(title).flatMap((line) => /^webhook calls: (.*) \((.*)\)$/.exec(line) ?? []);
    // The order of webhook calls is not guaranteed.
    expect(calls[1]?.split(', ').toSorted()).toEqual(types.toSorted());
    expect(calls[2]).toBe(subject);
  });

  it('unsubscribes with one click', () => {
    expect(step('Unsubscribe')).toEqual([
      'the mail client sends List-Unsubscribe=One-Click:',
      expect.stringMatching(/^POST http:\/\/link\.shop\.test:\d+\/u\/\S+ -> 200$/),
      'webhook calls: email_unsubscribed (zoe@inbox.test)',
      'POST /marketing/send -> 403',
      expect.stringContaining('RECIPIENT_UNSUBSCRIBED'),
      'webhook calls: email_suppressed (zoe@inbox.test)',
    ]);
  });

  it('sends every event to the webhook', () => {
    expect(step('Compare events').at(-1)).toBe('13 events, each with a webhook call with a valid signature');
  });

  it('prints the address of the console and a link that signs in', async () => {
    const [, address, link] =
      /^The console is at (http:\/\/\S+\/console\/)\..*\n\n {2}(\S+)$/m.exec(demo.output) ?? [];
    expect(link).toMatch(new RegExp(`^${address}#/link/[0-9A-Za-z]{43}$`));
    // Not every container knows the name.
    expect((await fetch(address?.replace('localhost', '127.0.0.1') ?? '')).status).toBe(200);
  });

  it.skipIf(required.missing)(`prints commands that work unchanged${required.reason}`, async () => {
    const all = lines();
    const first = all.findIndex((line) => line.startsWith('  export BASE='));
    const last = all.findIndex((line) => line.startsWith('Messages to any address'));
    const commands = all.slice(first, last).join('\n');
    const { stdout } = await promisify(execFile)('bash', ['-ec', commands]);
    // Responses follow each other without separators.
    const responses = stdout.split(/(?<=\})(?=\{"success")/).map((response) => JSON.parse(response));
    expect(
      responses.map(({ success, data }) => [success, Object.keys(data).find((key) => KEYS.has(key))]),
    ).toEqual([
      [true, 'messageId'],
      [true, 'messages'],
      [true, 'deliveries'],
    ]);
    const count = (text: string) => demo.output.split(text).length - 1;
    await eventually('the message to arrive', () => count('-> you@example.com') === 1);
    await eventually(
      'the webhook call',
      () => count('webhook calls: email_delivered (you@example.com)') === 1,
    );
  });

  it('ends with Ctrl-C and removes its files', async () => {
    expect(await demo.kill('SIGINT')).toEqual({ code: 0, signal: null });
    expect(demo.output.trimEnd()).toMatch(/Stopped\.$/);
    expect(await readdir(folder)).toEqual([]);
  });

  it('ends with Ctrl-C between its steps, too', async () => {
    const interrupted = startDemo();
    onTestFinished(async () => {
      if (interrupted.running) await interrupted.kill('SIGKILL');
    });
    await eventually('the first step', () => {
      if (!interrupted.running) throw new Error(`the demo ended: ${interrupted.output}`);
      return interrupted.output.includes('\n1. ');
    });
    expect(await interrupted.kill('SIGINT')).toEqual({ code: 0, signal: null });
    expect(interrupted.output).not.toContain('All steps succeeded');
    expect(interrupted.output.trimEnd()).toMatch(/Stopped\.$/);
    expect(await readdir(folder)).toEqual([]);
  });
});
