import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { runJob } from '../../../src/delivery/worker/job.ts';
import type { DeliveryJob } from '../../../src/delivery/worker/protocol.ts';
import { MARKS, type MessageContent } from '../../../src/mail/content.ts';
import { client, gist, job, jsonContent, sink } from './rig.ts';

const CONTENT: MessageContent = {
  from: { name: 'Shop', address: 'shop@example.org' },
  to: [{ name: '', address: 'ann@example.test' }],
  cc: [],
  replyTo: null,
  subject: 'Your order',
  html: '',
  text: `Hello ${MARKS.recipient}.\r\n.\r\nLeave: ${MARKS.unsubscribeUrl}\r\n`,
  headers: [],
  attachments: [],
  messageId: '1@example.org',
  date: Date.UTC(2026, 0, 2, 3, 4, 5),
};
const { privateKey: key } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const content = (changes: Partial<MessageContent> = {}) =>
  jsonContent(JSON.stringify({ ...CONTENT, ...changes }));

describe('a job', () => {
  it('is composed, signed by every signer and delivered', async () => {
    const to = await sink();
    const signers = [
      { domain: 'example.org', selector: 'one', key },
      { domain: 'example.net', selector: 'two', key },
    ];
    const report = await runJob(job(to, { content: content(), signers }), client());
    expect(report && gist(report)).toBe('replied dot 250');
    const raw = to.messages[0]?.raw ?? '';
    expect(raw).toMatch(
      /^DKIM-Signature: [^]+ d=example\.org; s=one;[^]+^DKIM-Signature: [^]+ d=example\.net; s=two;/m,
    );
    expect(raw).toContain('\r\nSubject: Your order\r\n');
    expect(raw).toContain('Hello ann@example.test.\r\n.\r\nLeave: https://track.example.test/u/1\r\n');
  });

  it('asks for SMTPUTF8 when a header needs it, though the envelope does not', async () => {
    const to = await sink({ keywords: [] });
    const cc = [{ name: '', address: 'jörg@example.test' }];
    const report = await runJob(job(to, { content: content({ cc }) }), client());
    expect(report).toMatchObject({ conclusion: 'refused-locally', reply: { enhanced: '5.6.7' } });
  });

  const BROKEN: [name: string, changes: Partial<DeliveryJob>, why: RegExp][] = [
    ['content that is no JSON', { content: jsonContent('{') }, /^the message cannot be composed: .*JSON/],
    ['content of another shape', { content: jsonContent('{}') }, /^the message cannot be composed: /],
    ['content that is null', { content: jsonContent('null') }, /^the message cannot be composed: /],
    [
      'a recipient that would be a command',
      { envelope: { from: '', to: 'ann@example.test>\r\nRCPT TO:<bob@example.test' } },
      /control character/,
    ],
    [
      'a sender that would be a command',
      { envelope: { from: 'a\nb', to: 'ann@example.test' } },
      /control character/,
    ],
  ];
  it.each(BROKEN)('with %s is refused here, and the worker lives on', async (_, changes, why) => {
    const to = await sink();
    const by = client();
    const report = await runJob(job(to, { content: content(), ...changes }), by);
    expect(report).toMatchObject({
      conclusion: 'not-composed',
      reply: { code: 554, enhanced: '5.6.0', text: expect.stringMatching(why) },
      sessions: [],
    });
    expect(to.sessions).toHaveLength(0);
    expect(await runJob(job(to, { content: content() }), by)).toMatchObject({ conclusion: 'replied' });
  });

  it('that cannot be signed is deferred: a key can be replaced', async () => {
    const to = await sink();
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const signers = [{ domain: 'example.org', selector: 's', key: publicKey }];
    expect(await runJob(job(to, { content: content(), signers }), client())).toMatchObject({
      conclusion: 'refused-locally',
      reply: { code: 451, enhanced: '4.3.0', text: expect.stringMatching(/^the message cannot be signed: /) },
    });
    expect(to.sessions).toHaveLength(0);
  });

  it('gives its content up once the message is composed', async () => {
    const to = await sink({ script: { greeting: 'silent' } });
    const mine = job(to, { content: content() });
    const by = client();
    void runJob(mine, by);
    await expect.poll(() => to.sessions.length).toBe(1);
    expect(mine.content.octets.byteLength).toBe(0);
  });
});
