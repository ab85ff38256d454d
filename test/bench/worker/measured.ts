import { createHash, createPrivateKey, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { withoutPause } from '../../../src/core/concurrency/slices.ts';
import { createSmtpClient } from '../../../src/delivery/worker/client.ts';
import { createSharedContents, runJob } from '../../../src/delivery/worker/job.ts';
import type { DeliveryJob } from '../../../src/delivery/worker/protocol.ts';
import { composeInSteps, messageBytes } from '../../../src/mail/compose.ts';
import type { CopyDetails, MessageContent } from '../../../src/mail/content.ts';
import { signDkim } from '../../../src/mail/dkim.ts';
import { encodeText } from '../../../src/mail/encode.ts';
import { flowText } from '../../../src/mail/html/flowed.ts';
import { trackLinks } from '../../../src/mail/html/links.ts';
import { textFromHtml } from '../../../src/mail/html/text-part.ts';
import { readContent, writeDocumentInSteps } from '../../../src/mail/stored-content.ts';
import { clickKey, type Measurement, type MeasurementRequest } from './measurement.ts';

/**
 * Measures one kind of message in a separate process: `worker.ts` bundles this program, so that it runs what the
 * daemon runs, with the sources of either version. Prints a Measurement.
 */
// Sound: worker.ts writes this type.
const request = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as MeasurementRequest;
const { html, text, tracked, ports, roundMs, rounds } = request;

const key = createPrivateKey(request.keyPem);
const signers = [{ domain: 'sender.example', selector: 'one', key }];
const content: MessageContent = {
  from: { name: 'Shop', address: 'news@sender.example' },
  to: [{ name: 'Ann Reader', address: 'reader@recipient.example' }],
  cc: [],
  replyTo: null,
  subject: 'Your order was shipped',
  html,
  text,
  headers: [],
  attachments: [],
  messageId: 'msg_1767225600000_abcdefghijkl@sender.example',
  date: Date.UTC(2026, 0, 6, 10),
};
const copy: CopyDetails = {
  kind: 'transactional',
  recipient: 'reader@recipient.example',
  unsubscribeUrl: 'https://mail.example/u/abcdefghijklmnopqrstuvwxyz',
  reportAbuseUrl: 'https://mail.example/r/abcdefghijklmnopqrstuvwxyz',
  unsubscribeAddress: 'unsubscribe-abcdefgh@return-a.sender.example',
  signedId: 'abcdefghijklmnopqrstuvwxyz234567',
  feedbackAddress: 'fbl-abcdefgh@return-a.sender.example',
  feedbackId: 'tx:acc_1:tx:postrider',
  ...(tracked
    ? {
        tracking: {
          linkPrefix: 'https://mail.example/c/',
          clickSigner: clickKey(),
          messageId: 'msg_1767225600000_abcdefghijkl',
          pixelUrl: 'https://mail.example/o/abcdefghijklmnopqrstuvwxyz.gif',
        },
      }
    : {}),
};
const document = withoutPause(writeDocumentInSteps(content));

const client = createSmtpClient({
  clock: { now: () => Date.now() },
  monotonic: { now: () => performance.now() },
});
const sharedContents = createSharedContents();
/** Messages in progress at a time, one on each connection. */
const SLOTS = 8;

/** A job as it arrives in a worker: its bytes are its own. */
function newJob(slot: number, port: number, tls: DeliveryJob['tls']): DeliveryJob {
  return {
    id: slot,
    slot: `${tls}:${slot}`,
    content: { bytes: new Uint8Array(document), encoding: 'document', size: document.length },
    copy,
    envelope: { from: 'b-abcdefgh@return-a.sender.example', to: copy.recipient },
    signers,
    hosts: [{ name: 'mx.recipient.example', addresses: ['127.0.0.1'] }],
    port,
    tls,
    tlsSource: 'default',
    chunking: true,
    egress: { hostname: 'mail.example' },
    messagesPerConnection: 1_000_000,
    idleMs: 60_000,
  };
}

/** Sends messages over all slots for at least `roundMs` of CPU time; returns their number. */
async function send(port: number, tls: DeliveryJob['tls']): Promise<number> {
  const isOver = createCheck();
  let sent = 0;
  const inSlot = async (slot: number) => {
    while (!isOver()) {
      const report = await runJob(newJob(slot, port, tls), client, sharedContents);
      if (report?.reply?.code !== 250) throw new Error(`not delivered: ${JSON.stringify(report)}`);
      sent++;
    }
  };
  await Promise.all(Array.from({ length: SLOTS }, (_, slot) => inSlot(slot)));
  return sent;
}

/** Calls `step` for at least `roundMs` of CPU time; returns the number of calls. */
function repeat(step: () => unknown): number {
  const isOver = createCheck();
  let calls = 0;
  do {
    step();
    calls++;
  } while (!isOver());
  return calls;
}

/** Whether the round is over: reading the CPU time takes longer than some of the steps. */
function createCheck(): () => boolean {
  const start = cpuMs();
  let calls = 0;
  let checkAt = 1;
  return () => {
    if (++calls < checkAt) return false;
    checkAt = Math.ceil(calls * 1.3);
    return cpuMs() - start >= roundMs;
  };
}

const composed = withoutPause(composeInSteps(content, copy));
const tracking = trackLinks(html, copy);
const plainText = text ?? textFromHtml(html);
const headerHash = Buffer.alloc(1500, 'x');

const STEPS: Record<string, () => number | Promise<number>> = {
  decode: () => repeat(() => readContent({ bytes: document, encoding: 'document', size: document.length })),
  ...(text === null ? { 'derive text': () => repeat(() => textFromHtml(html)) } : {}),
  'encode text': () => repeat(() => encodeText(text === null ? flowText(plainText) : plainText)),
  ...(tracked ? { links: () => repeat(() => trackLinks(html, copy)) } : {}),
  'encode html': () => repeat(() => encodeText(tracking)),
  compose: () => repeat(() => withoutPause(composeInSteps(content, copy))),
  'body hash and signature': () => repeat(() => signDkim(composed, signers, content.date)),
  'SHA-256 alone': () => repeat(() => createHash('sha256').update(composed.body).digest('base64')),
  'RSA alone': () => repeat(() => sign('sha256', headerHash, key)),
  join: () => repeat(() => messageBytes(composed, ['x'.repeat(900)])),
  'whole message, plain': () => send(ports.plain, 'none'),
  'whole message, TLS': () => send(ports.tls, 'required'),
};

const best: Record<string, number> = {};
// The first round only lets V8 compile and connections open.
for (let round = 0; round <= rounds; round++) {
  for (const [name, step] of Object.entries(STEPS)) {
    if (request.only !== '' && request.only !== name) continue;
    const start = cpuMs();
    const calls = await step();
    const each = (cpuMs() - start) / calls;
    if (round > 0) best[name] = Math.min(best[name] ?? Number.POSITIVE_INFINITY, each);
  }
}
const measurement: Measurement = {
  bytes: messageBytes(composed).length,
  digest: createHash('sha256').update(messageBytes(composed)).digest('hex'),
  cpuMs: best,
};
console.log(JSON.stringify(measurement));
client.abort();
await client.close();

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
