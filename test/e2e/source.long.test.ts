// Long: installs all libraries and builds the program on a machine without a compiler.
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startChild } from '../support/child.ts';
import { environment } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { blocksOf } from '../support/reader.ts';
import { findProgram, requirePrograms } from '../support/required-programs.ts';
import { runOnTerminal } from '../support/terminal.ts';

/*
 * The installation from source on a machine without a compiler, as docs/reference/source.md describes it: a copy of the sources,
 * and a PATH with Node, npm and a shell alone. The compiled SQLite module comes from a local server in place of the one of
 * its authors.
 */
const required = requirePrograms('python3', 'terminal');
const run = promisify(execFile);
const PROJECT = new URL('../..', import.meta.url).pathname;
const PROGRAMS = ['sh', 'env', 'cat', 'ls', 'uname', 'dirname', 'setpriv'];
/** Host name, data, API, MX, submission, TLS, account, company, address, domain. */
const ANSWERS = ['mail.example.net', '', '', '', '', '', 'Example', '', '', '', ''];

describe.skipIf(required.missing)(`from source${required.reason}`, () => {
  let dir: string;
  let project: string;
  let env: NodeJS.ProcessEnv;
  let host: Server;
  let dns: DnsServer;
  let base: string;
  /** Paths that the installation downloaded from the server of the SQLite module. */
  const downloads: string[] = [];

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'postrider-source-'));
    project = join(dir, 'postrider');
    const { stdout } = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
      cwd: PROJECT,
      maxBuffer: 1 << 24,
    });
    for (const file of stdout.split('\0').filter((name) => name !== ''))
      cpSync(join(PROJECT, file), join(project, file));

    const bin = join(dir, 'bin');
    mkdirSync(bin);
    symlinkSync(process.execPath, join(bin, 'node'));
    for (const name of ['npm', 'npx', ...PROGRAMS]) {
      const path = findProgram(name);
      if (path === null) throw new Error(`${name} is not installed`);
      symlinkSync(path, join(bin, name));
    }

    // The packages of npm's cache, but none of the SQLite modules that it keeps by the address of their server: an
    // earlier run may have used the same port.
    const cache = join(dir, 'cache');
    mkdirSync(cache);
    const usualCache = process.env['npm_config_cache'] ?? join(homedir(), '.npm');
    const packages = join(usualCache, '_cacache');
    mkdirSync(packages, { recursive: true });
    symlinkSync(packages, join(cache, '_cacache'));

    const archive = join(dir, 'module.tar.gz');
    const sqlite = join(PROJECT, 'node_modules/better-sqlite3');
    await run('tar', ['-czf', archive, '-C', sqlite, 'build/Release/better_sqlite3.node']);
    host = createServer((request, response) => {
      downloads.push(request.url ?? '');
      response.end(readFileSync(archive));
    });
    const port = await freePort();
    await new Promise<void>((resolve) => host.listen(port, '127.0.0.1', resolve));
    dns = await startDnsServer();
    // `init` asks for the public address only when DNS and the interfaces show none.
    dns.set('mail.example.net', 'A', ['93.184.215.25']);
    base = `127.0.0.1:${await freePort()}`;
    env = {
      ...environment({
        'api.listen': base,
        'public.listen': `127.0.0.1:${await freePort()}`,
        'mx.listen': `127.0.0.1:${await freePort()}`,
        'console.listen': 'off',
        'dns.resolvers': [dns.address],
      }),
      PATH: bin,
      HOME: process.env['HOME'],
      npm_config_better_sqlite3_binary_host: `http://127.0.0.1:${port}`,
      npm_config_cache: cache,
      npm_config_prefer_offline: 'true',
    };
  });

  afterAll(async () => {
    host?.close();
    await dns?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const commands = blocksOf('docs/reference/source.md')
    .filter((block) => block.kind === 'run by' && block.test === 'test/e2e/source.long.test.ts')
    .flatMap(({ text }) => text.trim().split('\n'));

  it('has no compiler', async () => {
    for (const name of ['cc', 'gcc', 'g++', 'c++', 'make', 'python3'])
      await expect(run('/bin/sh', ['-c', `command -v ${name}`], { env })).rejects.toThrow('Command failed');
  });

  it('is installed by npm ci, which builds the program', async () => {
    expect(commands[0]).toBe('npm ci');
    await run(join(dirname(process.execPath), 'node'), [join(dir, 'bin/npm'), 'ci'], {
      cwd: project,
      env,
      maxBuffer: 1 << 24,
    });
    const { modules } = process.versions;
    expect(downloads).toEqual([expect.stringContaining(`-node-v${modules}-linux`)]);
  });

  it('is set up by init, and serves', async () => {
    expect(commands.slice(1)).toEqual(['npx postrider init', 'npx postrider serve']);
    const npx = join(dir, 'bin/npx');
    const { status, shown } = await runOnTerminal([npx, 'postrider', 'init'], ANSWERS, { cwd: project, env });
    expect(status, shown).toBe(0);
    const isReady = () =>
      fetch(`http://${base}/readyz`).then(
        (response) => response.status === 200,
        () => false,
      );
    // Without npx, which does not pass SIGTERM on: `init` has shown that it finds the program.
    const program = [join(project, 'dist/main.js'), 'serve'];
    const daemon = startChild(process.execPath, program, { cwd: project, env });
    try {
      await eventually('the daemon to be ready', () => {
        if (!daemon.running) throw new Error(`the daemon exited: ${daemon.output}`);
        return isReady();
      });
    } finally {
      await daemon.kill('SIGTERM');
    }
    await eventually('the daemon to have ended', async () => !(await isReady()));
  });
});
