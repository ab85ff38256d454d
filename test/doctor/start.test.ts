import { writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemRandom } from '../../src/core/random.ts';
import type { Result } from '../../src/doctor/finding.ts';
import { openForDoctor } from '../../src/doctor/open-database.ts';
import { examineStart } from '../../src/doctor/start.ts';
import { markAsCopy } from '../../src/store/backup/identity.ts';
import { createWriter } from '../../src/store/database/writer.ts';
import { openSeal } from '../../src/store/master-key.ts';
import { createAuthority } from '../support/certificates.ts';
import { freePort } from '../support/free-port.ts';
import { portOf } from '../support/https-client.ts';
import { type DoctorSetup, startHealthySetup } from './setup.ts';

/** A stopped daemon that has run before. Its MX listener has a free port. */
async function startStopped() {
  const setup = await startHealthySetup({
    settings: {
      'api.listen': '127.0.0.1:0',
      'public.listen': '127.0.0.1:0',
      'console.listen': 'off',
      'mx.listen': `127.0.0.1:${await freePort()}`,
      'public.url': 'https://pages.test',
    },
  });
  const { config, tables, db } = setup;
  config.file = '/etc/postrider/postrider.toml';
  const writer = createWriter(db, tables);
  await openSeal({ random: systemRandom, tables, writer }, { file: config.data.masterKeyFile });
  await writer.run(({ settings }) => {
    settings.put('instance-id', 'one');
    settings.raiseGeneration(7);
  });
  await writer.close();
  setup.setDaemon({ kind: 'stopped' });
  return setup;
}

async function obstacles({ config, dataDir }: DoctorSetup): Promise<Result[]> {
  const { database, close } = openForDoctor(dataDir);
  try {
    return await examineStart(config, database);
  } finally {
    close();
  }
}

async function occupy(listen: string): Promise<void> {
  const server: Server = createServer();
  const [host, port] = listen.split(':');
  await new Promise<void>((resolve) => server.listen(Number(port), host, resolve));
  onTestFinished(() => void server.close());
}

describe('examineStart', () => {
  it('finds no obstacle of a daemon that can start, and leaves its ports free', async () => {
    const setup = await startStopped();
    expect(await obstacles(setup)).toEqual([]);
    expect(await obstacles(setup)).toEqual([]);
    await occupy(setup.config.mx.listen);
  });

  it('reports a port of another program, and two settings with one address', async () => {
    const setup = await startStopped();
    await occupy(setup.config.mx.listen);
    setup.config.public.listen = `127.0.0.1:${await freePort()}`;
    setup.config.api.listen = setup.config.public.listen;
    expect(await obstacles(setup)).toMatchObject([
      { status: 'failure', subject: 'api.listen', reason: expect.stringContaining('is in use') },
      { status: 'failure', subject: 'mx.listen', reason: expect.stringContaining('ss -ltnp') },
    ]);
  });

  it('warns of a port of the console, without which the daemon starts', async () => {
    const setup = await startStopped();
    setup.config.console.listen = setup.config.mx.listen;
    await occupy(setup.config.mx.listen);
    setup.config.mx.listen = 'off';
    expect(await obstacles(setup)).toMatchObject([{ status: 'warning', subject: 'console.listen' }]);
  });

  it('reports an address that the machine does not have', async () => {
    const setup = await startStopped();
    setup.config.mx.listen = '192.0.2.99:2525';
    expect(await obstacles(setup)).toMatchObject([
      { subject: 'mx.listen', reason: expect.stringContaining('has no address 192.0.2.99') },
    ]);
  });

  it('reports the master key of another database', async () => {
    const setup = await startStopped();
    writeFileSync(setup.config.data.masterKeyFile, systemRandom.bytes(32));
    expect(await obstacles(setup)).toMatchObject([
      { status: 'failure', subject: 'data.masterKeyFile', reason: expect.stringContaining('is not the key') },
    ]);
  });

  it('reports a copy of a database that was not restored', async () => {
    const setup = await startStopped();
    const writer = createWriter(setup.db, setup.tables);
    await writer.run(markAsCopy);
    await writer.close();
    expect(await obstacles(setup)).toMatchObject([
      { status: 'failure', subject: 'database', reason: expect.stringContaining('was not restored') },
    ]);
  });

  it('reports a peer that has taken over, and none with the generation of the next start', async () => {
    const setup = await startStopped();
    const generation = setup.tables.settings.generation();
    let ofPeer = generation + 1;
    const peer = createHttpServer((_, response) =>
      response.end(JSON.stringify({ data: { instanceId: 'one', generation: ofPeer } })),
    );
    await new Promise<void>((resolve) => peer.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void peer.close());
    setup.config.standby.peers = [`http://127.0.0.1:${portOf(peer)}`];
    expect(await obstacles(setup)).toEqual([]);
    ofPeer++;
    expect(await obstacles(setup)).toMatchObject([
      { status: 'failure', subject: 'standby.peers', reason: expect.stringContaining('has taken over') },
    ]);
  });

  it('reports a private key that does not belong to the certificate', async () => {
    const setup = await startStopped();
    const authority = createAuthority();
    const [certificateFile, keyFile] = [join(setup.dir, 'cert.pem'), join(setup.dir, 'key.pem')];
    writeFileSync(certificateFile, authority.issue(['mail.example.net']).cert);
    writeFileSync(keyFile, authority.issue(['mail.example.net']).key);
    setup.config.mx.tls = { certificateFile, keyFile };
    expect(await obstacles(setup)).toMatchObject([{ status: 'failure', subject: 'mx.tls' }]);
  });
});

describe('the check of a stopped daemon', () => {
  it('is a failure with what prevents the start', async () => {
    const setup = await startStopped();
    await occupy(setup.config.mx.listen);
    expect(await setup.examine('daemon')).toMatchObject([
      { status: 'failure', subject: 'daemon', reason: expect.stringContaining('It cannot start') },
      { status: 'failure', subject: 'mx.listen' },
    ]);
  });

  it('is a failure without an obstacle, and a warning without configuration and database', async () => {
    const setup = await startStopped();
    const stopped = { reason: expect.stringContaining('Nothing that prevents a start was found') };
    expect(await setup.examine('daemon')).toMatchObject([{ status: 'failure', ...stopped }]);
    setup.config.file = null;
    setup.setDatabase({ kind: 'closed', finding: { subject: 'db', status: 'warning', reason: 'None.' } });
    expect(await setup.examine('daemon')).toMatchObject([{ status: 'warning', ...stopped }]);
  });
});
