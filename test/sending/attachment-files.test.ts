import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { expect, it, onTestFinished } from 'vitest';
import { monotonicClock } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { createResolver } from '../../src/dns/resolver.ts';
import { createAttachmentFiles } from '../../src/sending/attachment-files.ts';
import { parseSend } from '../../src/sending/request.ts';
import { createAuthority } from '../support/certificates.ts';
import { portOf } from '../support/https-client.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { BODY } from './acceptance.ts';

/** The files of a server that begins its responses and never ends them. */
async function startSlow(timeoutMs: number, reach: 'any' | 'default' = 'any') {
  const authority = createAuthority();
  const server = createServer(authority.issue(['127.0.0.1']));
  const requested = new Promise<void>((resolve) => {
    server.on('request', (_, response: ServerResponse) => {
      response.writeHead(200).write('begun');
      resolve();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const resolver = createResolver({
    resolvers: ['127.0.0.1:1'],
    timeoutMs: PATIENCE_MS,
    monotonic: monotonicClock,
    random: systemRandom,
  });
  const port = String(portOf(server));
  const files = createAttachmentFiles({
    resolver,
    trusted: authority.cert,
    userAgent: 'Postrider/1.2.3 (attachments)',
    ...(reach === 'any' ? { mayConnect: () => true } : {}),
    ports: new Set([port]),
    timeoutMs,
  });
  onTestFinished(() => {
    files.close();
    resolver.close();
    server.closeAllConnections();
    server.close();
  });
  const send = parseSend({ ...BODY, attachments: [{ url: `https://127.0.0.1:${port}/a` }] }, Date.now());
  if (isRefusal(send)) throw new Error(send.message);
  const use = () => files.use('acct_one', send, () => Promise.reject(new Error('the file arrived')));
  return { files, use, requested };
}

it('refuses a file that does not arrive in time, and messages whose turn did not come until then', async () => {
  const { use } = await startSlow(300);
  const found = await Promise.all(Array.from({ length: 6 }, use));
  for (const { code, message } of found.slice(0, 4)) {
    expect(code).toBe('ATTACHMENT_NOT_FETCHED');
    expect(message).toMatch(/^attachments\[0\]\.url: was not sent in time/);
  }
  // The others wait behind them; one of them may begin before its own time is over.
  for (const { code } of found.slice(4)) expect(['RATE_LIMITED', 'ATTACHMENT_NOT_FETCHED']).toContain(code);
});

it('ends fetches in progress when the daemon stops', async () => {
  const { files, use, requested } = await startSlow(PATIENCE_MS);
  const fetching = Array.from({ length: 5 }, use);
  await requested;
  files.close();
  for (const refusal of await Promise.all([...fetching, use()])) expect(refusal.code).toBe('UNAVAILABLE');
});

it('connects to public addresses alone, unless a test permits others', async () => {
  const { use } = await startSlow(PATIENCE_MS, 'default');
  expect((await use()).message).toBe('attachments[0].url: has no public address');
});
