import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import { createLogOutput, type LogOutput } from '../../src/core/log-output.ts';
import { temporaryDir } from '../support/store.ts';

/** A pipe in non-blocking mode; `read` returns what is in it. */
function pipe() {
  const file = join(temporaryDir(), 'pipe');
  execFileSync('mkfifo', [file]);
  const reader = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(file, constants.O_WRONLY | constants.O_NONBLOCK);
  onTestFinished(() => closeSync(reader));
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

/** An output that is closed with its descriptor, which a database of another test may get next. */
function outputTo(fd: number): LogOutput {
  const output = createLogOutput(fd);
  onTestFinished(() => {
    output.close();
    closeSync(fd);
  });
  return output;
}

const RECORDS = 30_000;

describe('a log that is not read', () => {
  it('listens to the end of the process only while records wait', async () => {
    const before = process.listenerCount('exit');
    const { writer, read } = pipe();
    const output = outputTo(writer);
    output.write('a record');
    expect(process.listenerCount('exit')).toBe(before);
    output.write('x'.repeat(1 << 17));
    expect(process.listenerCount('exit')).toBe(before + 1);
    await expect.poll(() => read() === '' && process.listenerCount('exit')).toBe(before);
  });

  it('uses one listener for all outputs, which writes what waits in each of them', async () => {
    const before = process.listeners('exit');
    const pipes = [pipe(), pipe()];
    const outputs = pipes.map(({ writer }) => outputTo(writer));
    for (const output of outputs) output.write('x'.repeat(100_000));
    const [listener, ...others] = process.listeners('exit').filter((one) => !before.includes(one));
    expect(others).toEqual([]);
    for (const { read } of pipes) read();
    listener?.call(process, 0);
    expect(process.listeners('exit')).toEqual(before);
  });

  it('blocks nothing, drops what exceeds its limit, and reports the number when it is read again', async () => {
    const { writer, read } = pipe();
    const output = outputTo(writer);
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
    const output = outputTo(writer);
    output.write('x'.repeat(1 << 20));
    await expect(output.flush(1)).resolves.toBeUndefined();
    expect(output.dropped()).toBe(0);
  });

  it('writes nothing more to a descriptor that was closed and opened for another file', async () => {
    const full = openSync('/dev/full', 'w');
    const output = createLogOutput(full);
    output.write('a record');
    output.close();
    closeSync(full);
    const file = join(temporaryDir(), 'other');
    const other = openSync(file, 'w');
    onTestFinished(() => closeSync(other));
    expect(other).toBe(full);
    await output.flush(1000);
    expect(readFileSync(file, 'utf8')).toBe('');
  });

  it('continues on a full disk', () => {
    const output = outputTo(openSync('/dev/full', 'w'));
    for (let n = 0; n < 3; n++) output.write('x'.repeat(600_000));
    expect(output.dropped()).toBe(2);
  });
});
