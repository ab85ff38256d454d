import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PATIENCE_MS } from './patience.ts';
import { longestFirst, STAND_INS } from './server-reader.ts';

/** One of several machines of a document: runs commands in bash, with replaced texts and additional programs. */
export interface Machine {
  /** Returns the stdout; rejects with all output when a command fails. */
  run(commands: string): Promise<string>;
}

export interface MachineOptions {
  /** A directory for the programs. */
  dir: string;
  /** The environment of its daemon: `postrider` is the built program with it. */
  env: NodeJS.ProcessEnv;
  replace: Record<string, string>;
  /** Name and shell script. */
  programs?: Record<string, string>;
}

const PROGRAM = new URL('../../dist/main.js', import.meta.url).pathname;

export function createMachine({ dir, env, replace, programs = {} }: MachineOptions): Machine {
  const postrider = `exec '${process.execPath}' '${PROGRAM}' "$@"`;
  mkdirSync(dir, { recursive: true });
  for (const [name, script] of Object.entries({ ...STAND_INS, postrider, ...programs }))
    writeFileSync(join(dir, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const path = `${dir}:${dirname(process.execPath)}:/usr/sbin:${process.env['PATH']}`;
  const texts = Object.entries(longestFirst(replace));
  return {
    run: (commands) => {
      const script = texts.reduce((text, [from, to]) => text.replaceAll(from, to), commands);
      return new Promise((resolve, reject) => {
        const options = { cwd: dir, env: { ...env, PATH: path }, timeout: PATIENCE_MS };
        execFile('bash', ['-euo', 'pipefail', '-c', script], options, (error, stdout, stderr) => {
          if (error === null) resolve(stdout);
          else reject(new Error(`${script}\n${stdout}\n${stderr}`));
        });
      });
    },
  };
}
