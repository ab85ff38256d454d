import { get } from 'node:http';
import { Registry } from 'prom-client';
import { expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../../src/core/log.ts';
import { systemRandom } from '../../../src/core/random.ts';
import { createSeal } from '../../../src/core/seal.ts';
import { inboundFileRoute } from '../../../src/http/public/inbound-file.ts';
import { mediaRoute } from '../../../src/http/public/media.ts';
import type { PageHosts } from '../../../src/http/public/own-host.ts';
import { createPublicServer } from '../../../src/http/public/server.ts';
import { viewRoute } from '../../../src/http/public/view.ts';
import { sentMailOf } from '../../../src/mail/sent-mail.ts';
import { createTokens } from '../../../src/mail/tokens.ts';
import { createMediaFiles } from '../../../src/media/files.ts';
import type { DescribedMedia } from '../../../src/store/media.ts';
import { createLocalReader } from '../../../src/store/readers/reads.ts';
import { enqueue, startStore } from '../../support/store.ts';
import { callAt } from './rig.ts';

const HOSTS: PageHosts = {
  publicUrl: () => 'http://127.0.0.1',
  hostname: 'mail.example.com',
  ownerOfHost: () => null,
};

const IMAGE: DescribedMedia = {
  seq: 1,
  media_id: 'media_1',
  account_id: 'acct_one',
  content_seq: 1,
  link: 'x'.repeat(43),
  name: 'a',
  alt: '',
  created_at: 0,
  updated_at: 0,
  type: 'image/png',
  width: 1,
  height: 1,
  frames: 1,
  size: 5_000_000,
  digest: 'abc',
};

/** More than the buffers of a connection. */
const FILE_BYTES = 30_000_000;

/** The routes of images, of messages and of received files; their reads are counted. */
async function start() {
  const store = startStore();
  const { tables, clock } = store;
  const local = createLocalReader(tables);
  let reads = 0;
  const waiting: (() => void)[] = [];
  let isSlow = false;
  const counted = async () => {
    reads++;
    if (isSlow) await new Promise<void>((resolve) => waiting.push(resolve));
  };
  const reader: typeof local = {
    ...local,
    table: (async (...parameters: Parameters<typeof local.table>) => {
      await counted();
      return local.table(...parameters);
    }) as typeof local.table,
    query: (async (...parameters: Parameters<typeof local.query>) => {
      await counted();
      return local.query(...parameters);
    }) as typeof local.query,
  };
  const tokens = createTokens(createSeal(Buffer.alloc(32, 1), systemRandom));
  const files = { ...createMediaFiles({ tables, reader }), find: () => IMAGE };
  const view = viewRoute(
    { tables, reader },
    {
      tokens,
      hosts: HOSTS,
      describeCopy: () => {
        throw new Error('the message is not composed');
      },
    },
  );
  const inboundFile = inboundFileRoute({
    linked: () => ({
      accountId: 'acct_one',
      read: async () => {
        await counted();
        return {
          name: 'a',
          type: 'application/octet-stream',
          bytes: Buffer.alloc(FILE_BYTES),
          close: () => {},
        };
      },
    }),
  });
  const server = createPublicServer({
    config: { listen: '127.0.0.1:0', trustedProxies: [] },
    log: createLog({ level: 'silent', hashAddresses: true }),
    registry: new Registry(),
    routes: [mediaRoute({ files, hosts: HOSTS }), view, inboundFile],
  });
  await server.listen();
  onTestFinished(() => server.close(0));
  const mail = sentMailOf(enqueue(tables, clock.now()));
  return {
    base: `http://127.0.0.1:${server.address()?.port}`,
    path: `/v/${tokens.of('acct_one').viewUrl(mail)}`,
    reads: () => reads,
    slowDown: () => {
      isSlow = true;
    },
    goOn: () => {
      isSlow = false;
      for (const resolve of waiting.splice(0)) resolve();
    },
  };
}

it('HEAD of an image does not read it', async () => {
  const { base, reads } = await start();
  const { status, headers, body } = await callAt(base, `/m/${IMAGE.link}.png`, { method: 'HEAD' });
  expect([status, headers['content-length'], headers['etag'], body]).toEqual([200, '5000000', '"abc"', '']);
  expect(reads()).toBe(0);
});

it('HEAD of a message does not compose it', async () => {
  const { base, path } = await start();
  const { status, headers } = await callAt(base, path, { method: 'HEAD' });
  expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
  expect(headers).not.toHaveProperty('content-length');
});

it('a message is not read for clients that disconnected before their turn', async () => {
  const { base, path, reads, slowDown, goOn } = await start();
  slowDown();
  const controller = new AbortController();
  const requests = Array.from({ length: 20 }, () =>
    fetch(`${base}${path}`, { signal: controller.signal }).catch(() => null),
  );
  // As many as an account may have at a time.
  await expect.poll(reads).toBe(4);
  controller.abort();
  await Promise.all(requests);
  // The server has noticed it when it answers another connection.
  await callAt(base, '/', {});
  goOn();
  expect((await callAt(base, path, { method: 'HEAD' })).status).toBe(200);
  expect(reads()).toBe(5);
});

it('files that clients do not read are in memory a few at a time', async () => {
  const { base, reads } = await start();
  const opened = Array.from({ length: 6 }, () => get(`${base}/f/token`, { agent: false }));
  for (const request of opened) request.on('error', () => {}).on('response', (response) => response.pause());
  await expect.poll(reads).toBe(4);
  // The server answers others meanwhile.
  expect((await callAt(base, `/m/${IMAGE.link}.png`, { method: 'HEAD' })).status).toBe(200);
  expect(reads()).toBe(4);
  for (const request of opened.slice(0, 4)) request.destroy();
  await expect.poll(reads).toBe(6);
  for (const request of opened) request.destroy();
});
