import { Worker } from 'node:worker_threads';
import { expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../../src/core/log.ts';
import type { IncomingMail } from '../../../src/smtp/mx/intake.ts';
import { createMailReceiver } from '../../../src/smtp/mx/receive.ts';
import { createMailParser } from '../../../src/smtp/parser/mail-parser.ts';
import { SmtpRejection } from '../../../src/smtp/reply.ts';
import { heldClock } from '../../support/store.ts';

/** Parses each mail as a complaint with one aligned signature. */
const COMPLAINTS = `
const { parentPort } = require('node:worker_threads');
parentPort.on('message', ({ ready }) => parentPort.postMessage(ready ? { ready } : {
  parsed: { kind: 'arf', from: 'abuse@example.net', reports: [], aggregate: null, tls: null, postriderId: null },
  fingerprint: new Uint8Array(16),
  keyNames: ['s1._domainkey.example.net'],
}));`;

it('rejects a complaint temporarily when the parser stops before its signature is verified', async () => {
  const log = createLog({ level: 'silent', hashAddresses: false });
  const parser = createMailParser(log, { startThread: () => new Worker(COMPLAINTS, { eval: true }) });
  onTestFinished(() => parser.stop());
  const applied: IncomingMail[] = [];
  const receiver = createMailReceiver(
    { clock: heldClock(), log },
    {
      parser,
      applyMail: async (mail) => void applied.push(mail),
      resolver: {
        txt: async (name) => {
          await parser.stop();
          return { records: [['v=DKIM1; p=']], ttl: 60, authenticated: false, name };
        },
      },
    },
  );
  const reply = await receiver.receive({
    raw: Buffer.from('Subject: complaint\r\n\r\n'),
    sender: '',
    recipients: [
      { address: 'fbl-x@return-a.example.com', purpose: { kind: 'feedback', messageId: 'msg_one' } },
    ],
    remoteAddress: '192.0.2.1',
  });
  expect(reply).toBeInstanceOf(SmtpRejection);
  expect(reply).toMatchObject({ responseCode: '451 4.3.0' });
  expect(applied).toEqual([]);
});
