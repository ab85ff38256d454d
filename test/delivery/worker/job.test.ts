import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createSharedContents, runJob } from '../../../src/delivery/worker/job.ts';
import type { DeliveryJob, SharedReference } from '../../../src/delivery/worker/protocol.ts';
import { MARKS, type MessageContent } from '../../../src/mail/content.ts';
import type { SharedContent } from '../../../src/mail/shared-content.ts';
import { type JobContent, packContent } from '../../../src/mail/stored-content.ts';
import { RSA_KEY as key } from '../../support/rsa-keys.ts';
import { client, job, jsonContent, sink, summary } from './setup.ts';

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
const content = (changes: Partial<MessageContent> = {}) =>
  jsonContent(JSON.stringify({ ...CONTENT, ...changes }));

describe('a job', () => {
  it('is composed, signed by every signer and delivered', async () => {
    const to = await sink();
    const signers = [
      { domain: 'example.org', selector: 'one', key },
      { domain: 'example.net', selector: 'two', key },
    ];
    const report = await runJob(job(to, { content: content(), signers }), client(), createSharedContents());
    expect(report && summary(report)).toBe('replied dot 250');
    const raw = to.messages[0]?.raw ?? '';
    expect(raw).toMatch(
      /^DKIM-Signature: [^]+ d=example\.org; s=one;[^]+^DKIM-Signature: [^]+ d=example\.net; s=two;/m,
    );
    expect(raw).toContain('\r\nSubject: Your order\r\n');
    expect(raw).toContain('Hello ann@example.test.\r\n.\r\nLeave: https://track.example.test/u/1\r\n');
  });

  it('of one domain does not wait for a large message of another domain to be composed', async () => {
    const to = await sink();
    const by = client();
    const run = (slot: string, from: string, changes: Partial<MessageContent>) => {
      const envelope = { from, to: 'ann@example.test' };
      return runJob(job(to, { slot, envelope, content: content(changes) }), by, createSharedContents());
    };
    const html = '<p><a href=x>text</a>'.repeat(50_000);
    const large = run('a', 'return@example.org', { html, text: null });
    const small = run('b', 'return@example.net', { subject: 'Small' });
    await Promise.all([large, small]);
    expect(to.messages[0]?.raw).toContain('\r\nSubject: Small\r\n');
  });

  it('is decoded after the large message of its domain before it is composed', async () => {
    const to = await sink();
    const by = client();
    const html = '<p><a href=x>text</a>'.repeat(50_000);
    const large = (slot: string, domain: string, onDecoding: () => void = () => {}) => {
      const { bytes, ...encoded } = content({ html, text: null });
      const envelope = { from: `return@${domain}`, to: 'ann@example.test' };
      return job(to, {
        slot,
        envelope,
        content: {
          ...encoded,
          get bytes() {
            onDecoding();
            return bytes;
          },
        },
      });
    };
    const first = large('a', 'example.org');
    const { content: whole } = first;
    /** For each other message whether the first one is still being composed when it is decoded. */
    const during = new Map<string, boolean>();
    const note = (slot: string) => () => void during.set(slot, first.content === whole);
    const jobs = [first, large('b', 'example.org', note('b')), large('c', 'example.net', note('c'))];
    await Promise.all(jobs.map((each) => runJob(each, by, createSharedContents())));
    expect(Object.fromEntries(during)).toEqual({ b: false, c: true });
    expect(to.messages).toHaveLength(3);
  });

  it('requests SMTPUTF8 when a header needs it and the envelope does not', async () => {
    const to = await sink({ keywords: [] });
    const cc = [{ name: '', address: 'jörg@example.test' }];
    const report = await runJob(job(to, { content: content({ cc }) }), client(), createSharedContents());
    expect(report).toMatchObject({ conclusion: 'refused-locally', reply: { enhanced: '5.6.7' } });
  });

  const BROKEN: [name: string, changes: Partial<DeliveryJob>, why: RegExp][] = [
    ['content that is no JSON', { content: jsonContent('{') }, /^the message cannot be composed: .*JSON/],
    [
      'content of another shape',
      { content: jsonContent('{}') },
      /^the message cannot be composed: the stored content has no field from, to, subject, html, messageId$/,
    ],
    [
      'content without a sender',
      { content: jsonContent(JSON.stringify({ ...CONTENT, from: undefined })) },
      /^the message cannot be composed: the stored content has no field from$/,
    ],
    [
      'content that is null',
      { content: jsonContent('null') },
      /^the message cannot be composed: the stored content is not an object$/,
    ],
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
  it.each(BROKEN)('with %s is not composed, and the worker continues', async (_, changes, why) => {
    const to = await sink();
    const by = client();
    const report = await runJob(job(to, { content: content(), ...changes }), by, createSharedContents());
    expect(report).toMatchObject({
      conclusion: 'not-composed',
      reply: { code: 554, enhanced: '5.6.0', text: expect.stringMatching(why) },
      sessions: [],
    });
    expect(to.messages).toHaveLength(0);
    // Over the same connection.
    expect(await runJob(job(to, { content: content() }), by, createSharedContents())).toMatchObject({
      conclusion: 'replied',
    });
    expect([to.sessions.length, to.messages.length]).toEqual([1, 1]);
  });

  it('to a host that does not respond is neither composed nor signed', async () => {
    const to = await sink({ script: { greeting: 'silent' } });
    const mine = job(to, { content: jsonContent('{') });
    const report = await runJob(mine, client({ greeting: 100 }), createSharedContents());
    expect(report && summary(report)).toBe('unreachable greeting');
    expect(mine.content).toEqual(jsonContent('{'));
  });

  it('that cannot be signed is deferred, because the key can be replaced', async () => {
    const to = await sink();
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const signers = [{ domain: 'example.org', selector: 's', key: publicKey }];
    expect(
      await runJob(job(to, { content: content(), signers }), client(), createSharedContents()),
    ).toMatchObject({
      conclusion: 'refused-locally',
      reply: { code: 451, enhanced: '4.3.0', text: expect.stringMatching(/^the message cannot be signed: /) },
    });
    expect(to.messages).toHaveLength(0);
  });

  it('releases its content when the message is composed', async () => {
    const to = await sink({ script: { rcpt: 'silent' } });
    const mine = job(to, { content: content() });
    const by = client();
    void runJob(mine, by, createSharedContents());
    await expect
      .poll(() => to.sessions[0]?.commands.some((command) => command.startsWith('RCPT')))
      .toBe(true);
    expect(mine.content).toEqual({ encoding: 'text', text: '', size: 0 });
  });
});

describe('a job with a shared content', () => {
  const shared: SharedContent = {
    from: CONTENT.from,
    fromDomain: 'example.com',
    replyTo: null,
    list: { id: 'sgroup_1', name: 'News' },
    subject: { first: 0, holes: [0], texts: ['Hello ', ''] },
    html: { first: 1, holes: [0, 0], texts: ['<p>', ', ', '</p>'] },
    text: null,
  };
  const packed = packContent(JSON.stringify({ ...shared, padding: ' '.repeat(1000) }));
  const reference = (body: string | Buffer): SharedReference => {
    const bytes = new Uint8Array(new SharedArrayBuffer(body.length));
    bytes.set(Buffer.from(body));
    const identity = { messageId: 'msg_1', date: 0 };
    return { id: 7, bytes, encoding: 'deflate', size: packed.size, identity };
  };
  const own = (...values: string[]) => jsonContent(JSON.stringify({ name: 'Ann', values }));

  it('is composed of both parts and decodes the shared one once', async () => {
    const to = await sink();
    const by = client();
    const sharedContents = createSharedContents();
    await runJob(
      job(to, { content: own('Ann', '&lt;Ann&gt;'), shared: reference(packed.body) }),
      by,
      sharedContents,
    );
    await runJob(
      job(to, { content: own('Bob', '&lt;Bob&gt;'), shared: reference('damaged') }),
      by,
      sharedContents,
    );
    const mails = to.messages.map(({ raw }) => raw);
    expect(mails).toHaveLength(2);
    expect(mails[0]).toContain('Subject: Hello Ann\r\n');
    expect(mails[0]).toContain('<p>&lt;Ann&gt;, &lt;Ann&gt;</p>');
    expect(mails[0]).toContain('Message-ID: <msg_1@example.com>');
    expect(mails[1]).toContain('<p>&lt;Bob&gt;, &lt;Bob&gt;</p>');
  });

  it('is composed with the fields of its content when only the texts are shared', async () => {
    const to = await sink();
    const values = ['Ann', '&lt;Ann&gt;'];
    const { html: _html, text: _text, ...fields } = CONTENT;
    const texts = { html: { ...shared.html, first: 1 }, text: null };
    const json = packContent(JSON.stringify({ ...texts, padding: ' '.repeat(1000) }));
    const of = (content: JobContent, more: Partial<DeliveryJob> = {}) => job(to, { content, ...more });
    await runJob(
      of(jsonContent(JSON.stringify({ values, fields })), {
        shared: { ...reference(json.body), size: json.size },
      }),
      client(),
      createSharedContents(),
    );
    const html = '<p>&lt;Ann&gt;, &lt;Ann&gt;</p>';
    await runJob(
      of(jsonContent(JSON.stringify({ ...CONTENT, html, text: null }))),
      client(),
      createSharedContents(),
    );
    const [mail, complete] = to.messages.map(({ raw }) =>
      raw.replace(/^DKIM-Signature:(?:.*\r\n[ \t])*.*\r\n/gm, ''),
    );
    expect(mail).toContain(html);
    expect(mail).toBe(complete);
  });

  it('fails when the shared content is damaged, and other jobs do not', async () => {
    const to = await sink();
    const report = await runJob(
      job(to, { content: own('Ann', 'Ann'), shared: reference('damaged') }),
      client(),
      createSharedContents(),
    );
    expect(report).toMatchObject({ conclusion: 'not-composed', reply: { code: 554, enhanced: '5.6.0' } });
  });
});
