import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { refuse } from '../../src/core/refusal.ts';
import { createBodyReader, UploadAborted } from '../../src/http/body/body.ts';
import { routesOf } from '../../src/http/route.ts';
import { type Api, jsonOf, startApi } from './harness.ts';

const route = routesOf({ tag: 'Things', scope: 'setup' });

let api: Api;
afterEach(() => api.stop());

/** An operation that reads an upload as a stream, and what it has read. */
function uploadRoute() {
  const seen = { chunks: 0, bytes: 0, aborted: false };
  let pace: (() => Promise<void>) | null = null;
  let enough = Number.POSITIVE_INFINITY;
  const upload = route('POST /web-setup/upload', {
    operationId: 'upload',
    summary: 'Takes an upload',
    upload: { 'text/csv': 'a,b\n', 'application/x-ndjson': '{}\n' },
    response: { description: 'Taken.', data: z.object({ type: z.string(), bytes: z.int() }) },
    handle: async ({ upload }) => {
      if (upload === null) throw new Error('there is no upload');
      try {
        for await (const chunk of upload.bytes) {
          seen.chunks++;
          seen.bytes += chunk.length;
          if (seen.bytes > enough) return refuse('VALIDATION_ERROR', 'that is enough');
          await pace?.();
        }
      } catch (error) {
        seen.aborted = error instanceof UploadAborted;
        throw error;
      }
      return { type: upload.type, bytes: seen.bytes };
    },
  });
  return {
    upload,
    seen,
    readAtPace: (each: () => Promise<void>) => {
      pace = each;
    },
    refuseAfter: (bytes: number) => {
      enough = bytes;
    },
  };
}

const send = (body: RequestInit['body'], headers: Record<string, string> = {}) =>
  fetch(`${api.base}/web-setup/upload`, {
    method: 'POST',
    headers: { ...api.as('setup'), 'Content-Type': 'text/csv', ...headers },
    body: body ?? null,
    ...(body instanceof ReadableStream ? { duplex: 'half' } : {}),
  });

const head = (more: string) =>
  `POST /web-setup/upload HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${api.secrets.setup}\r\nX-Id: ${api.account.accountId}\r\nContent-Type: text/csv\r\n${more}\r\n\r\n`;

describe('an upload', () => {
  it('may exceed the limit of other bodies', async () => {
    const { upload } = uploadRoute();
    api = await startApi({ routes: [upload], limits: { setupBytes: 1000 } });
    const response = await send('x'.repeat(3_000_000));
    expect(await jsonOf(response)).toMatchObject({ data: { type: 'text/csv', bytes: 3_000_000 } });
  });

  it.each([
    ['text/csv; charset=utf-8', 200],
    ['Application/X-NDJSON', 200],
    ['application/json', 415],
    ['text/csv; charset=latin1', 415],
    ['text/csv; charset=utf-16le', 200],
    ['text/csv; charset=utf-32', 415],
  ])('is answered by its type: %s, %i', async (type, status) => {
    const { upload } = uploadRoute();
    api = await startApi({ routes: [upload] });
    expect((await send('a,b\n', { 'Content-Type': type })).status).toBe(status);
  });

  it('is refused with a content coding', async () => {
    const { upload } = uploadRoute();
    api = await startApi({ routes: [upload] });
    expect((await send('a', { 'Content-Encoding': 'gzip' })).status).toBe(415);
  });

  it('is read as a stream with backpressure', async () => {
    const { upload, seen, readAtPace } = uploadRoute();
    api = await startApi({ routes: [upload] });
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    readAtPace(() => held);
    const total = 64 * 1024 * 1024;
    const socket = connect(api.port, '127.0.0.1').on('error', () => {});
    socket.write(head(`Content-Length: ${total}`));
    const block = Buffer.alloc(1024 * 1024, 'x');
    let given = 0;
    const give = () => {
      while (given < total) {
        given += block.length;
        if (!socket.write(block)) return;
      }
    };
    socket.on('drain', give);
    give();
    await expect.poll(() => seen.chunks).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 300));
    // The buffers of the operating system contain a part; no more was transferred.
    expect(seen.chunks).toBe(1);
    expect(given).toBeLessThan(total / 2);
    socket.destroy();
    release();
  });

  it('gets a response if the handler refuses it early', async () => {
    const { upload, refuseAfter } = uploadRoute();
    api = await startApi({ routes: [upload] });
    refuseAfter(100_000);
    const response = await send('x'.repeat(3_000_000));
    expect([response.status, await jsonOf(response)]).toMatchObject([
      400,
      { error: { message: 'that is enough' } },
    ]);
  });

  it('stops its handler when the client disconnects, without a logged error', async () => {
    const { upload, seen } = uploadRoute();
    api = await startApi({ routes: [upload] });
    const socket = connect(api.port, '127.0.0.1').on('error', () => {});
    socket.write(`${head('Content-Length: 1000')}abc`);
    await expect.poll(() => seen.bytes).toBe(3);
    socket.destroy();
    await expect.poll(() => seen.aborted).toBe(true);
    expect(api.logged.filter(({ msg }) => msg === 'request failed')).toEqual([]);
  });

  it('may take longer than other requests', async () => {
    const { upload } = uploadRoute();
    const connectionLimits = { headersMs: 1500, requestMs: 2000, checkMs: 20 };
    api = await startApi({ routes: [upload], options: { connectionLimits } });
    const slow = new ReadableStream({
      async start(controller) {
        for (let n = 0; n < 6; n++) {
          controller.enqueue(new TextEncoder().encode('abc'));
          await new Promise((resolve) => setTimeout(resolve, 500));
        }
        controller.close();
      },
    });
    expect(await jsonOf(await send(slow))).toMatchObject({ data: { bytes: 18 } });
  });

  it('gets 408 when it stops, which states that a part may be stored', async () => {
    const { upload } = uploadRoute();
    const pace = { idleMs: 300, graceMs: 60_000, bytesPerSecond: 1 };
    api = await startApi({
      routes: [upload],
      options: { bodies: createBodyReader({ paces: { json: pace, upload: pace } }) },
    });
    const socket = connect(api.port, '127.0.0.1');
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.write(`${head('Content-Length: 1000')}abc`);
    await once(socket, 'close');
    const response = Buffer.concat(chunks).toString();
    expect(response).toMatch(/^HTTP\/1\.1 408 /);
    expect(response).toContain('The upload arrived too slowly: only what was read before is stored');
  });

  it('requires a key before its first byte', async () => {
    const { upload, seen } = uploadRoute();
    api = await startApi({ routes: [upload] });
    expect((await send('abc', { 'X-Api-Key': 'pr_x' })).status).toBe(401);
    expect(seen.chunks).toBe(0);
  });

  it('has its media types in the document', async () => {
    const { upload } = uploadRoute();
    api = await startApi({ routes: [upload] });
    const document = (await (await fetch(`${api.base}/openapi.json`)).json()) as {
      paths: Record<string, { post: { requestBody: object } }>;
    };
    expect(document.paths['/web-setup/upload']?.post.requestBody).toEqual({
      required: true,
      content: {
        'text/csv': { schema: { type: 'string' }, example: 'a,b\n' },
        'application/x-ndjson': { schema: { type: 'string' }, example: '{}\n' },
      },
    });
    expect(await (await fetch(`${api.base}/docs/things`)).text()).toContain('--data-binary @FILE');
  });
});
