import { createServer } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createStandby } from '../../src/backup/standby.ts';
import { createLog } from '../../src/core/log.ts';
import { Superseded } from '../../src/store/database/failure.ts';
import { portOf } from '../support/https-client.ts';

const log = createLog({ level: 'silent', hashAddresses: true });
const OWN = { instanceId: 'one', generation: 10 };

/** A peer whose response a test changes. */
async function startPeer() {
  const peer = { status: 200, body: '', url: '' };
  const server = createServer((request, response) => {
    response.writeHead(request.url === '/instance' ? peer.status : 404, {
      'Content-Type': 'application/json',
    });
    response.end(peer.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  peer.url = `http://127.0.0.1:${portOf(server)}`;
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return peer;
}

const answer = (instanceId: string, generation: number) =>
  JSON.stringify({ success: true, data: { instanceId, generation } });

describe('the check of the peers', () => {
  it('rejects only for a higher generation of the same instance', async () => {
    const peer = await startPeer();
    const standby = createStandby({ peers: [peer.url], log });
    for (const body of [answer('one', 9), answer('one', 10), answer('another', 11)]) {
      peer.body = body;
      await standby.check(OWN);
    }
    peer.body = answer('one', 11);
    await expect(standby.check(OWN)).rejects.toThrow(Superseded);
    await expect(standby.check(OWN)).rejects.toThrow('--force-new-generation');
    expect(await standby.highestGeneration()).toBe(11);
  });

  it('ignores a peer that is down, fails or responds with something else', async () => {
    const peer = await startPeer();
    const standby = createStandby({ peers: [peer.url, 'http://127.0.0.1:1'], log });
    peer.body = 'no JSON';
    await standby.check(OWN);
    peer.body = answer('one', 11).padEnd(10_000, ' ');
    await standby.check(OWN);
    peer.body = answer('one', 11);
    peer.status = 503;
    await standby.check(OWN);
    expect(await standby.highestGeneration()).toBe(0);
    peer.status = 200;
    await expect(standby.check(OWN)).rejects.toThrow(Superseded);
  });

  it('is repeated, and reports a peer that has taken over since', async () => {
    const peer = await startPeer();
    peer.body = answer('one', 9);
    const standby = createStandby({ peers: [peer.url], log, intervalMs: 10 });
    onTestFinished(standby.stop);
    const superseded = new Promise<Superseded>((resolve) => standby.watch(OWN, resolve));
    peer.body = answer('one', 11);
    expect((await superseded).message).toContain(`${peer.url} has taken over`);
  });
});
