import { appendFileSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { createShell } from './run.ts';

let shell: ReturnType<typeof createShell>;
let server: Server;
let status: number;
let port: number;
beforeEach(async () => {
  shell = createShell();
  port = await freePort();
  appendFileSync(shell.file, `[api]\nlisten = "0.0.0.0:${port}"\n`);
  status = 200;
  server = createServer((req, res) => res.writeHead(req.url === '/healthz' ? status : 404).end('{}'));
});
afterEach(() => {
  server.close();
  shell.remove();
});

describe('health', () => {
  it('succeeds when the daemon is alive, and fails when it is not', async () => {
    expect(await shell.run('health')).toMatchObject({
      status: 1,
      err: expect.stringMatching(/does not respond at http:\/\/127\.0\.0\.1:\d+\/healthz: .*ECONNREFUSED/),
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    expect(await shell.run('health')).toEqual({ status: 0, out: 'The daemon is alive', err: '' });
    expect(await shell.json('health', '--json')).toMatchObject({ alive: true });
    status = 503;
    expect(await shell.run('health')).toMatchObject({
      status: 1,
      err: expect.stringContaining('status 503'),
    });
  });

  it('is the health check of the container image', () => {
    const file = readFileSync(new URL('../../.packaging/Containerfile', import.meta.url), 'utf8');
    expect(file).toMatch(/^HEALTHCHECK .* CMD \["\/usr\/bin\/postrider", "health"\]$/m);
  });
});
