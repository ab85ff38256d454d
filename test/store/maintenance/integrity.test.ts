import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { checkIntegrity } from '../../../src/store/maintenance/integrity.ts';

/** The result of a check whose process runs `code`. */
function check(code: string) {
  return checkIntegrity('none.db', {
    timeoutMs: 60_000,
    signal: new AbortController().signal,
    script: new URL(`data:text/javascript,${encodeURIComponent(code)}`),
  });
}

const TABLES = `process.stdout.write('{"kind":"tables","count":2}\\n');`;
const TABLE = `process.stdout.write('{"kind":"table","name":"accounts","problems":[]}\\n');`;

it('is incomplete when the process is killed while it writes a line', async () => {
  const result = await check(
    `${TABLES}${TABLE}process.stdout.write('{"kind":"tab');process.kill(process.pid, 'SIGKILL');`,
  );
  expect(result).toEqual({ outcome: 'incomplete', tables: 2, examined: 1, problems: [] });
});

it('fails when the process ends with an error', async () => {
  const result = await check(`${TABLES}${TABLE}process.exit(4);`);
  expect(result).toMatchObject({
    outcome: 'failed',
    problems: ['the process of the check ended with status 4'],
  });
});

it('fails when no descriptors are left for the process, as a message to the service manager does', () => {
  const program = fileURLToPath(new URL('no-descriptors-process.ts', import.meta.url));
  const command = 'ulimit -n 100 && exec "$0" --import "$1" "$2"';
  const printed = execFileSync('sh', ['-c', command, process.execPath, import.meta.resolve('tsx'), program], {
    encoding: 'utf8',
  });
  expect(JSON.parse(printed)).toEqual({
    outcome: 'failed',
    problems: [expect.stringContaining('EMFILE')],
    received: false,
  });
});
