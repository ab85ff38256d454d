import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, it, onTestFinished } from 'vitest';
import type { FromWorker, ToWorker, WorkerSetup } from '../../../src/delivery/worker/protocol.ts';
import { builtThread } from '../../support/built-thread.ts';
import { createAuthority } from '../../support/certificates.ts';
import { RSA_KEY } from '../../support/rsa-keys.ts';
import { job, jsonContent, sink } from './setup.ts';

const content = JSON.stringify({
  from: { name: 'Shop', address: 'shop@example.org' },
  to: [{ name: '', address: 'ann@example.test' }],
  cc: [],
  replyTo: null,
  subject: 'Your order',
  html: '<p>Hello</p>',
  text: 'Hello',
  headers: [],
  attachments: [],
  messageId: '1@example.org',
  date: 0,
});

it('a worker thread reports ready, delivers over TLS, sends reports and exits after stop', async () => {
  const to = await sink({ tls: createAuthority().issue(['mx1.example.test']) });
  const signers = [{ domain: 'example.org', selector: 's', key: RSA_KEY }];

  const begun = new SharedArrayBuffer(4);
  const workerData: WorkerSetup = { begun, authorities: [], idleConnections: 10 };
  const worker = new Worker(builtThread('delivery/worker/main.ts'), { workerData });
  onTestFinished(async () => void (await worker.terminate()));
  const received: FromWorker[] = [];
  worker.on('message', (message: FromWorker) => received.push(message));
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  const post = (message: ToWorker) => worker.postMessage(message);
  await expect.poll(() => received).toEqual([{ kind: 'ready' }]);

  const jobs = Array.from({ length: 10 }, (_, index) =>
    job(to, { slot: `slot ${index % 3}`, content: jsonContent(content), signers }),
  );
  post({ kind: 'jobs', jobs });
  const reports = () => received.flatMap((each) => (each.kind === 'reports' ? each.reports : []));
  await expect.poll(() => reports().length).toBe(10);
  expect(new Set(reports().map(({ id }) => id)).size).toBe(10);
  expect(new Int32Array(begun)[0]).toBe(10);
  for (const report of reports()) {
    expect(report).toMatchObject({ conclusion: 'replied', phase: 'dot', reply: { code: 250 } });
    expect(report.sessions[0]?.tls).toMatchObject({
      protocol: 'TLSv1.3',
      verified: false,
      policy: 'opportunistic',
    });
  }
  expect(to.messages.every(({ raw }) => raw.startsWith('DKIM-Signature: '))).toBe(true);

  const ended = once(worker, 'exit');
  post({ kind: 'stop', graceMs: 1000 });
  expect(await ended).toEqual([0]);
  expect(received.at(-1)).toEqual({ kind: 'stopped' });
});
