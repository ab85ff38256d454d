import { execFileSync } from 'node:child_process';

/** Vitest's global setup: builds the program once. Unit tests start its threads, all others the whole program. */
export default function build(): void {
  execFileSync('npm', ['run', '--silent', 'build'], {
    cwd: new URL('../..', import.meta.url),
    stdio: 'inherit',
  });
}
