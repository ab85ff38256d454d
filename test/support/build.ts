import { execFileSync } from 'node:child_process';

/** End-to-end tests run what a person runs: the built program. Build it once, before the first of them. */
export default function build(): void {
  execFileSync('npm', ['run', '--silent', 'build'], {
    cwd: new URL('../..', import.meta.url),
    stdio: 'inherit',
  });
}
