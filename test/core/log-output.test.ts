import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import { createLogOutput } from '../../src/core/log-output.ts';
import { temporaryDir } from '../support/store.ts';

/** A pipe in non-blocking mode; `read` returns what is in it. */
function pipe() {
  const file = join(temporaryDir(), 'pipe');
  execFileSync('mkfifo', [file]);
  const reader = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(file, constants.O_WRONLY | constants.O_NONBLOCK);
  onTestFinished(() => closeSync(reader));
  onTestFinished(() => closeSync(writer));
  const buffer = Buffer.alloc(1 << 20);
  const read = () => {
    try {
      return buffer.toString('utf8', 0, readSync(reader, buffer));
    } catch {
      // Empty: EAGAIN.
      return '';
    }
  };
  return { writer, read };
}

const RECORDS = 30_000;

describe('a log that is not read', () => {
  it('blocks nothing, drops what exceeds its limit, and reports the number when it is read again', async () => {
    const { writer, read } = pipe();
    const output = createLogOutput(writer);
    const log = createLog({ level: 'info', hashAddresses: true }, output);
    for (let n = 0; n < RECORDS; n++) log.info({ n }, 'message delivered');
    const dropped = output.dropped();
    expect(dropped).toBeGreaterThan(0);
    // The pipe and the limit have space for some.
    expect(dropped).toBeLessThan(RECORDS);

    let text = '';
    await expect
      .poll(() => {
        text += read();
        return text;
      })
      .toContain('log records dropped');
    await output.flush(1);
    const lines = (text + read()).trimEnd().split('\n');
    // All lines are complete, and in their order.
    const records = lines.map((line): Record<string, unknown> => JSON.parse(line));
    const numbers = records.flatMap(({ n }) => (typeof n === 'number' ? [n] : []));
    expect(numbers).toEqual(Array.from({ length: RECORDS - dropped }, (_, n) => n));
    expect(records.filter(({ msg }) => msg !== 'message delivered')).toMatchObject([
      { level: 'warn', dropped, msg: 'log records dropped: standard output was not read' },
    ]);
    expect(output.dropped()).toBe(dropped);
    log.info('later');
    expect(read()).toContain('later');
  });

  it('does not delay the end of the process for longer than the timeout', async () => {
    const { writer } = pipe();
    const output = createLogOutput(writer);
    output.write('x'.repeat(1 << 20));
    await expect(output.flush(1)).resolves.toBeUndefined();
    expect(output.dropped()).toBe(0);
  });

  it('continues on a full disk', () => {
    const full = openSync('/dev/full', 'w');
    onTestFinished(() => closeSync(full));
    const output = createLogOutput(full);
    for (let n = 0; n < 3; n++) output.write('x'.repeat(600_000));
    expect(output.dropped()).toBe(2);
  });
});
