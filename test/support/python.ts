import { execFileSync } from 'node:child_process';
import { PYTHON } from './required-programs.ts';

/** Runs a Python program given as text and returns what it printed; throws with its complaint when it fails. */
export function runPython(program: string, args: string[], input: Buffer | string = ''): string {
  return execFileSync(PYTHON, ['-c', program, ...args], {
    input,
    encoding: 'utf8',
    maxBuffer: 16 * 1024 * 1024,
  });
}
