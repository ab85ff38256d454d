import { execFileSync } from 'node:child_process';

/** Vitest's global setup of the tests that run the built program: builds it once. */
export default function build(): void {
  execFileSync('npm', ['run', '--silent', 'build'], {
    cwd: new URL('../..', import.meta.url),
    stdio: 'inherit',
  });
}
