import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createContext, FAILED, USAGE } from '../../src/cli/context.ts';
import { requireOpenFiles } from '../../src/core/open-files.ts';
import { runProgram } from './run.ts';

function temporary(): string {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-location-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

it('finds the data directory relative to the configuration file', async () => {
  const [etc, elsewhere] = [temporary(), temporary()];
  const file = join(etc, 'postrider.toml');
  writeFileSync(file, 'hostname = "mail.example.net"\n[data]\ndir = "state"\n');
  const create = ['--config', file, 'account', 'create', '--name', 'Shop', '--id', 'shop', '--json'];
  expect(await runProgram(create, {}, elsewhere)).toMatchObject({ status: 0 });
  expect(existsSync(join(etc, 'state/postrider.db'))).toBe(true);
  const { status, out } = await runProgram(
    ['account', 'list', '--json'],
    { POSTRIDER_CONFIG: file },
    elsewhere,
  );
  expect(status).toBe(0);
  expect(JSON.parse(out)).toMatchObject([{ accountId: 'shop' }]);
});

it.each([
  ['list accounts', ['account', 'list']],
  ['create an operator', ['operator', 'create', '--email', 'ops@example.com']],
])('creates no data directory in another working directory to %s', async (_, args) => {
  const wrong = temporary();
  const { status, err } = await runProgram(args, {}, wrong);
  expect(status).toBe(FAILED);
  expect(err).toContain(`There is no database in ${join(wrong, 'data')} (no configuration file was found in`);
  expect(existsSync(join(wrong, 'data'))).toBe(false);
});

it('creates no data directory for an import of a file that does not exist', async () => {
  const wrong = temporary();
  writeFileSync(join(wrong, 'passphrase'), 'correct horse battery staple');
  const args = ['account', 'import', 'shop.gz', '--passphrase-file', 'passphrase'];
  const { status, err } = await runProgram(args, {}, wrong);
  expect([status, err]).toEqual([FAILED, expect.stringContaining('shop.gz does not exist')]);
  expect(existsSync(join(wrong, 'data'))).toBe(false);
});

it.each([
  [['--instance', '../a'], '../a'],
  [['--instance', 'shop', '--config', 'postrider.toml'], 'cannot be used with'],
])('refuses %j', async (options, message) => {
  const { status, err } = await runProgram([...options, 'account', 'list'], {}, temporary());
  expect([status, err]).toEqual([USAGE, expect.stringContaining(message)]);
});

it('reads the configuration of an instance, also in front of a command of its name', async () => {
  const { status, err } = await runProgram(['--instance', 'queue', 'account', 'list'], {}, temporary());
  expect([status, err]).toEqual([FAILED, expect.stringContaining('/etc/postrider-queue/postrider.toml')]);
});

it.each([
  ['/etc/postrider-shop/postrider.toml', 'systemctl edit postrider@shop)'],
  ['/etc/postrider/postrider.toml', 'systemctl edit postrider)'],
])('reports errors with the commands for %s', (file, command) => {
  const lines: string[] = [];
  vi.spyOn(console, 'error').mockImplementation((line: string) => void lines.push(line));
  onTestFinished(() => {
    vi.restoreAllMocks();
    process.exitCode = undefined;
  });
  const { report, note } = createContext(() => file);
  try {
    requireOpenFiles(64);
  } catch (error) {
    report(String(error), FAILED);
    note(String(error));
  }
  expect(lines).toEqual([expect.stringContaining(command), expect.stringContaining(command)]);
});

it('uses the file in the working directory', async () => {
  const checkout = temporary();
  mkdirSync(join(checkout, 'config'));
  writeFileSync(join(checkout, 'config/postrider.toml'), '[data]\ndir = "../here"\n');
  expect((await runProgram(['account', 'create', '--name', 'Shop'], {}, checkout)).status).toBe(0);
  expect(existsSync(join(checkout, 'here/postrider.db'))).toBe(true);
});

it('refuses to create a second database if there is one of the time without a configuration file', async () => {
  const checkout = temporary();
  mkdirSync(join(checkout, 'config'));
  expect((await runProgram(['account', 'create', '--name', 'Shop'], {}, checkout)).status).toBe(0);
  writeFileSync(join(checkout, 'config/postrider.toml'), 'hostname = "mail.example.net"\n');
  for (const args of [['serve'], ['account', 'create', '--name', 'Shop']]) {
    const { status, err } = await runProgram(args, {}, checkout);
    expect([status, err]).toEqual([FAILED, expect.stringContaining(`set dir = "${join(checkout, 'data')}"`)]);
  }
  expect(existsSync(join(checkout, 'config/data'))).toBe(false);
});

it.each([
  ['a file', 'file', /file is not a directory: use another directory/],
  ['a directory with files', '.', /is not empty/],
])('init refuses %s as the data directory', async (_, data, message) => {
  const dir = temporary();
  writeFileSync(join(dir, 'file'), '');
  const { status, err } = await runProgram(['init', '--yes', '--data', data], {}, dir);
  expect([status, err]).toEqual([FAILED, expect.stringMatching(message)]);
});

it('demo rejects an invalid port', async () => {
  const { status, err } = await runProgram(['demo', '--port', 'abc'], {}, temporary());
  expect([status, err]).toEqual([USAGE, expect.stringContaining('Must be a port number')]);
});

it.each<[string, string[], number, RegExp]>([
  ['a failure', ['queue', 'list', '--json'], FAILED, /^There is no database in /],
  ['an unknown option', ['account', 'list', '--nonsense', '--json'], USAGE, /^unknown option '--nonsense'/],
  ['a refused value', ['account', 'create', '--name', '', '--json'], USAGE, /^name: /],
])('writes %s as JSON to stderr', async (_, args, status, message) => {
  const outcome = await runProgram(args, {}, temporary());
  expect(outcome).toMatchObject({ status, out: '' });
  expect(JSON.parse(outcome.err)).toEqual({
    success: false,
    error: { code: status === USAGE ? 'USAGE' : 'FAILED', message: expect.stringMatching(message) },
  });
});
