import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CommanderError } from 'commander';
import { vi } from 'vitest';
import { type CliContextOptions, createContext, PARTIAL, USAGE } from '../../src/cli/context.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { openNewDatabase } from '../support/store.ts';

/** Output and exit status of a command. */
export interface CommandResult {
  status: number;
  out: string;
  err: string;
}

/** A data directory with an empty database, and commands on it, run in this process. */
export function createShell(options: Pick<CliContextOptions, 'generateKey'> = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-cli-'));
  mkdirSync(join(dir, 'data'), { mode: 0o700 });
  openNewDatabase(join(dir, 'data')).close();
  const file = join(dir, 'postrider.toml');
  writeFileSync(file, `[data]\ndir = ${JSON.stringify(join(dir, 'data'))}\n`);

  async function run(...args: string[]): Promise<CommandResult> {
    const out: string[] = [];
    const err: string[] = [];
    vi.spyOn(console, 'log').mockImplementation((text: string) => void out.push(text));
    vi.spyOn(console, 'error').mockImplementation((text: string) => void err.push(text));
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => err.push(String(text)) > 0);
    const context = createContext(() => file, options);
    let status = 0;
    try {
      const program = await buildProgram(context, '0.0.0', args);
      await program.parseAsync(args, { from: 'user' });
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
      status = error.exitCode === 0 ? 0 : USAGE;
    } finally {
      await context.close();
      vi.restoreAllMocks();
    }
    status ||= Number(process.exitCode ?? 0);
    process.exitCode = undefined;
    return { status, out: out.join('\n'), err: err.join('\n') };
  }

  return {
    file,
    run,
    /** The JSON that a command printed; a partial success prints it, too. */
    json: async (...args: string[]) => {
      const { status, out, err } = await run(...args);
      if (status !== 0 && status !== PARTIAL) throw new Error(`${args.join(' ')}: ${err}`);
      return JSON.parse(out);
    },
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}

/** The built program. */
export const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** Runs the program as a separate process. */
export function runProgram(
  args: string[],
  env: Record<string, string> = {},
  cwd: string = process.cwd(),
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const options = { env: { ...process.env, ...env }, cwd };
    execFile(process.execPath, [MAIN, ...args], options, (error, out, err) =>
      resolve({ status: typeof error?.code === 'number' ? error.code : 0, out, err }),
    );
  });
}
