// Long: starts two daemons with copies of one database in turns.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startChild } from '../support/child.ts';
import { startDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startSendingSetup } from '../support/sending-setup.ts';

/*
 * An operator makes the old primary the primary again: `serve --force-new-generation`.
 *
 *   old primary (killed) ──copy──▶ standby, running ──asked by──▶ old primary, which refuses, then takes over by force
 */
const PROGRAM = new URL('../../dist/main.js', import.meta.url).pathname;

interface Instance {
  instanceId: string;
  generation: number;
}

const instanceOf = async (baseUrl: string): Promise<Instance> => {
  const response = await fetch(`${baseUrl}/instance`);
  const { data }: { data: Instance } = JSON.parse(await response.text());
  return data;
};

describe('serve --force-new-generation', () => {
  it('is refused on data in use, and otherwise stops the standby that took over', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'postrider-force-'));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const standbyApi = `127.0.0.1:${await freePort()}`;
    const setup = await startSendingSetup({
      'log.level': 'warn',
      'standby.peers': [`http://${standbyApi}`],
    });
    const { daemon: old } = setup;
    const created = JSON.parse(await old.cli('backup', dir, '--include-key', '--json'));
    const dataDir = join(dir, 'data');
    await old.cli('restore', created.path, '--data', dataDir);
    const standby = await startDaemon({
      'data.dir': dataDir,
      'api.listen': standbyApi,
      'dns.resolvers': [setup.dns.address],
      'standby.peers': [old.baseUrl],
      'log.level': 'warn',
    });
    await eventually('the old primary to stop', () => old.log().includes('has taken over'));
    expect((await old.kill('SIGTERM')).code).toBe(4);
    const before = await instanceOf(standby.baseUrl);

    // A second daemon on the data of the running one changes nothing, forced or not.
    const second = await standby.tryCli('serve', '--force-new-generation');
    expect(second).toMatchObject({ code: 1, stderr: expect.stringContaining(dataDir) });
    expect(await instanceOf(standby.baseUrl)).toEqual(before);

    // Without force the old primary refuses; with it, its generation is the highest, and the standby ends.
    expect((await old.tryCli('serve')).code).toBe(4);
    const forced = startChild(process.execPath, [PROGRAM, 'serve', '--force-new-generation'], {
      env: old.env,
    });
    onTestFinished(async () => void (await forced.kill('SIGTERM')));
    await eventually('the forced daemon to answer', () => {
      if (!forced.running) throw new Error(`the daemon exited: ${forced.output}`);
      return fetch(`${old.baseUrl}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    });
    const after = await instanceOf(old.baseUrl);
    expect(after.instanceId).toBe(before.instanceId);
    expect(after.generation).toBeGreaterThan(before.generation);
    await eventually('the standby to stop', () => standby.log().includes('has taken over'));
    expect((await standby.kill('SIGTERM')).code).toBe(4);
    expect((await standby.tryCli('serve')).code).toBe(4);

    const { status } = await old.api.send({
      subject: 'Hello',
      html: '<p>Hello.</p>{{company_address_html}}{{unsubscribe_email_html}}',
      from: 'a@kunde.example',
      to: 'user@empfang.example',
    });
    expect(status).toBe(200);
    await eventually('the message', () => setup.sink.count === 1);
    expect((await forced.kill('SIGTERM')).code).toBe(0);
    // Both were started by the test's support and have stopped by themselves.
    await expect(old.stop()).rejects.toThrow('the daemon exited with');
    await expect(standby.stop()).rejects.toThrow('the daemon exited with');
    await setup.sink.close();
    await setup.dns.close();
  });
});
