import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Child, startChild } from '../support/child.ts';
import { eventually } from '../support/eventually.ts';

/*
 * Signals during the start and while the daemon is up.
 */
const PROGRAM = new URL('../../dist/main.js', import.meta.url).pathname;
const IGNORED = ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const;
/** signal(7), Linux on x86 and ARM. */
const NUMBERS = { SIGHUP: 1, SIGUSR1: 10, SIGUSR2: 12 };

function start(...args: string[]): { child: Child; dir: string } {
  return startWith([], ...args);
}

function startWith(nodeArgs: readonly string[], ...args: string[]): { child: Child; dir: string } {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-signals-'));
  const env = {
    PATH: process.env['PATH'],
    POSTRIDER_HOSTNAME: '"mx.postrider.example"',
    POSTRIDER_DATA__DIR: JSON.stringify(join(dir, 'data')),
    POSTRIDER_API__LISTEN: '"127.0.0.1:0"',
    POSTRIDER_PUBLIC__LISTEN: '"127.0.0.1:0"',
    POSTRIDER_MX__LISTEN: '"off"',
  };
  const child = startChild(process.execPath, [...nodeArgs, PROGRAM, ...args], { env, cwd: dir });
  onTestFinished(async () => {
    await child.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  });
  return { child, dir };
}

/** Whether the process has a handler for the signal (proc(5), SigCgt). */
function handles(child: Child, signal: keyof typeof NUMBERS): boolean {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  const mask = BigInt(`0x${/^SigCgt:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`);
  return ((mask >> BigInt(NUMBERS[signal] - 1)) & 1n) === 1n;
}

describe('serve', () => {
  it('stops and exits with 1 after a rejection that nothing handles', async () => {
    const code = "process.on('SIGUSR2', () => void Promise.reject(new Error('a defect')))";
    const { child } = startWith(['--import', `data:text/javascript,${encodeURIComponent(code)}`], 'serve');
    await eventually('the daemon to be up', () => child.output.includes('postrider started'));
    child.signal('SIGUSR2');
    expect(await child.exited).toEqual({ code: 1, signal: null });
    expect(child.output).toContain('a defect');
    expect(child.output).toMatch(/unexpected error; stopping[^]*"msg":"stopped"/);
  });

  it('survives SIGHUP, SIGUSR1 and SIGUSR2 during the start and later, and opens no inspector', async () => {
    const { child } = start('serve');
    await eventually('the early handlers', () => handles(child, 'SIGHUP') && handles(child, 'SIGUSR2'), {
      everyMs: 1,
    });
    expect(child.output).not.toContain('postrider started');
    for (const signal of IGNORED) child.signal(signal);
    await eventually('the daemon to be up', () => child.output.includes('postrider started'));
    for (const signal of IGNORED) child.signal(signal);
    await eventually('the configuration to be read again', () =>
      child.output.includes('configuration reloaded'),
    );
    await eventually(
      'the other signals to be logged',
      () => child.output.match(/signal ignored/g)?.length === 2,
    );
    expect(child.output).not.toMatch(/debugger|inspector/i);
    expect(await child.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  });

  it('stops with exit code 0 after SIGTERM during the start', async () => {
    const { child, dir } = start('serve');
    await eventually('the start to be under way', () => existsSync(join(dir, 'data', 'daemon.lock')), {
      everyMs: 1,
    });
    expect(child.output).not.toContain('postrider started');
    expect(await child.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(child.output).toContain('"msg":"stopped"');
  });
});

it('other commands ignore SIGUSR1 and SIGUSR2, and exit on SIGHUP', async () => {
  const { child } = start('demo');
  await eventually('the early handlers', () => handles(child, 'SIGUSR2'), { everyMs: 1 });
  child.signal('SIGUSR1');
  child.signal('SIGUSR2');
  expect(handles(child, 'SIGHUP')).toBe(false);
  expect(await child.kill('SIGHUP')).toEqual({ code: null, signal: 'SIGHUP' });
  expect(child.output).not.toMatch(/debugger|inspector/i);
});
