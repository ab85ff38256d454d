import { execFileSync } from 'node:child_process';
import { PYTHON } from './required-programs.ts';

/** Runs the source of a Python program and returns its output; throws with its error output when it fails. */
export function runPython(program: string, args: string[], input: Buffer | string = ''): string {
  return execFileSync(PYTHON, ['-c', program, ...args], {
    input,
    encoding: 'utf8',
    maxBuffer: 16 * 1024 * 1024,
  });
}
