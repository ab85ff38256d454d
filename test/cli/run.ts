import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CommanderError } from 'commander';
import { vi } from 'vitest';
import { createContext, USAGE } from '../../src/cli/context.ts';
import { buildProgram } from '../../src/cli/program.ts';

/** What a command said and how it ended. */
export interface Outcome {
  status: number;
  out: string;
  err: string;
}

/** A data directory of its own, and commands over it: in this process, as main.ts runs them. */
export function createShell() {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-cli-'));
  const file = join(dir, 'postrider.toml');
  writeFileSync(file, `[data]\ndir = ${JSON.stringify(join(dir, 'data'))}\n`);

  async function run(...args: string[]): Promise<Outcome> {
    const out: string[] = [];
    const err: string[] = [];
    vi.spyOn(console, 'log').mockImplementation((text: string) => void out.push(text));
    vi.spyOn(console, 'error').mockImplementation((text: string) => void err.push(text));
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => err.push(String(text)) > 0);
    const context = createContext(() => file);
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
    /** The JSON that a command printed. */
    json: async (...args: string[]) => {
      const { status, out, err } = await run(...args);
      if (status !== 0) throw new Error(`${args.join(' ')}: ${err}`);
      return JSON.parse(out);
    },
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

/** The program as a process of its own. */
export function runProgram(args: string[], env: Record<string, string> = {}): Promise<Outcome> {
  return new Promise((resolve) => {
    const options = { env: { ...process.env, ...env } };
    execFile(process.execPath, ['--import', 'tsx', MAIN, ...args], options, (error, out, err) =>
      resolve({ status: typeof error?.code === 'number' ? error.code : 0, out, err }),
    );
  });
}
