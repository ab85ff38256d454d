import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createNotifier, type NotifierOptions } from '../../src/supervision/notify.ts';
import { startNotifySocket } from '../support/notify-socket.ts';
import { findChild } from '../support/process-cost.ts';
import { requirePrograms } from '../support/required-programs.ts';

const required = requirePrograms('systemd-notify');

function start(options: Partial<NotifierOptions> & { socket: string }) {
  const records: { msg: string; reason?: string }[] = [];
  const log = pino({ base: {} }, { write: (line) => void records.push(JSON.parse(line)) });
  const notifier = createNotifier({ log, ...options });
  onTestFinished(() => notifier.close());
  return { notifier, records };
}

describe.skipIf(required.missing)(`messages to the service manager${required.reason}`, () => {
  it('sends the variables of each message in one datagram, in order', async () => {
    const socket = await startNotifySocket();
    const { notifier } = start({ socket: socket.path });
    const sent = [
      notifier.send({ READY: '1', STATUS: '12,345 queued, * 210/min $HOME `id`' }),
      notifier.send({ WATCHDOG: '1' }),
      notifier.send({ STOPPING: '1' }),
    ];
    expect(await Promise.all(sent)).toEqual([true, true, true]);
    expect(socket.messages()).toEqual([
      ['READY=1', 'STATUS=12,345 queued, * 210/min $HOME `id`'],
      ['WATCHDOG=1'],
      ['STOPPING=1'],
    ]);
  });

  it('keeps a value with control characters in its variable', async () => {
    const socket = await startNotifySocket();
    const { notifier } = start({ socket: socket.path });
    expect(await notifier.send({ STATUS: 'disk full\nMAINPID=1\tREADY=1' })).toBe(true);
    expect(socket.messages()).toEqual([['STATUS=disk full MAINPID=1 READY=1']]);
  });

  it('logs a repeated failure once', async () => {
    const { notifier, records } = start({ socket: '/nonexistent/notify' });
    expect(await notifier.send({ WATCHDOG: '1' })).toBe(false);
    expect(await notifier.send({ WATCHDOG: '1' })).toBe(false);
    expect(records).toHaveLength(1);
    expect(records[0]?.reason).toMatch(/systemd-notify exited with 1: .*No such file/);
  });

  it('reports that the program is missing', async () => {
    const { notifier, records } = start({ socket: '/nonexistent/notify', path: '/nonexistent' });
    expect(await notifier.send({ READY: '1' })).toBe(false);
    expect(records[0]?.reason).toMatch(/exited with 127: .*systemd-notify: not found/);
    expect(records[0]?.msg).toContain('package systemd');
  });

  it('starts another shell when one has ended', async () => {
    const socket = await startNotifySocket();
    const { notifier } = start({ socket: socket.path });
    expect(await notifier.send({ READY: '1' })).toBe(true);
    // The end of its script.
    process.kill(findChild('/bin/sh', '\ndone'), 'SIGKILL');
    await expect.poll(() => notifier.send({ WATCHDOG: '1' })).toBe(true);
    expect(socket.messages()).toContainEqual(['WATCHDOG=1']);
  });

  it('fails a message that is not received in time, and those beyond the limit of waiting messages', async () => {
    const socket = await startNotifySocket();
    const { notifier, records } = start({ socket: socket.path, timeoutMs: 1 });
    const sent = Array.from({ length: 20 }, () => notifier.send({ WATCHDOG: '1' }));
    expect((await Promise.all(sent)).slice(16)).toEqual([false, false, false, false]);
    expect(records[0]?.reason).toContain('did not respond within');
  });
});
