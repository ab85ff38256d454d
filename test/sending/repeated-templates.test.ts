import { describe, expect, it, vi } from 'vitest';
import { isRefusal } from '../../src/core/refusal.ts';
import type { PackedContent } from '../../src/mail/stored-content.ts';
import type { SendRequest } from '../../src/sending/request.ts';
import { insertAccount, insertDomain } from '../support/store.ts';
import { accepted, BODY, startAcceptance } from './acceptance.ts';

const LONG = `<table>${'<tr><td>Article, blue</td></tr>\n'.repeat(50)}</table>`;
const HTML = `<p>Hello {{name}}, order {{order.number}}</p>${LONG}{{company_address_html}}{{unsubscribe_email_html}}<p>{{name}}</p>`;
const TEXT = 'Hello {{name}}\n{{company_address_text}}\n{{unsubscribe_email_text}}';
const MAIL: SendRequest = { ...BODY, html: HTML };
/** With two texts of 8 million characters, its base64 exceeds 16 Mi characters. */
const FILE = {
  name: 'a.bin',
  contentType: 'application/octet-stream',
  content: Buffer.alloc(900_000).toString('base64'),
};

function start(...options: Parameters<typeof startAcceptance>) {
  const setup = startAcceptance(...options);
  /** Ids of the shared contents of the messages, oldest first. */
  const sharedIds = () =>
    setup
      .stored()
      .map(({ content_id }) => setup.tables.messages.content(content_id)?.shared_id ?? null)
      .toReversed();
  const repeat = async (count: number, changes: Partial<SendRequest> = {}, accountId = 'acct_one') => {
    for (let n = 0; n < count; n++) accepted(await setup.send({ ...MAIL, ...changes }, { accountId }));
  };
  return { ...setup, sharedIds, repeat };
}

/** The content of a send that is the only one of its template. */
async function completeContent(changes: Partial<SendRequest>) {
  const { repeat, contents, sharedIds } = start();
  await repeat(1, changes);
  expect(sharedIds()).toEqual([null]);
  return contents()[0];
}

const EACH = { messageId: expect.any(String), date: expect.any(Number) };

describe('a template that is sent repeatedly', () => {
  it('is stored once from the third message on', async () => {
    const { repeat, sharedIds, tables } = start();
    await repeat(5);
    const [first, second, third, ...others] = sharedIds();
    expect([first, second]).toEqual([null, null]);
    expect(third).toEqual(expect.any(Number));
    expect(others).toEqual([third, third]);
    const shared = tables.sharedContents.get(third ?? 0);
    expect(shared?.size).toBeGreaterThan(LONG.length);
  });

  it.each([
    ['text derived from html', {}],
    ['a text part', { text: TEXT }],
    ['short html', { html: HTML.replace(LONG, '') }],
    ['other values', { templateVariables: { name: 'Bob & "Eve" <b>', order: { number: 8 } } }],
    ['a reply address and headers', { replyTo: 'help@example.com', headers: { 'X-Order': '7' } }],
    ['defaults', { html: HTML.replaceAll('{{name}}', '{{nickname|friend}}') }],
    ['a display name in UTF-8', { to: 'Zoë <zoe@example.net>', subject: 'Ünter {{name}}' }],
  ] satisfies [string, Partial<SendRequest>][])(
    'has the same content as a single one: %s',
    async (_, changes) => {
      const { repeat, contents, sharedIds } = start();
      await repeat(2, { ...changes, templateVariables: { name: 'Someone else', order: { number: 1 } } });
      await repeat(1, changes);
      expect(sharedIds()[2]).toEqual(expect.any(Number));
      const complete = await completeContent(changes);
      expect(contents()[0]).toEqual({ ...complete, ...EACH });
      // A value from the other messages would be a message to the wrong person.
      expect(JSON.stringify(contents()[0])).not.toContain('Someone else');
    },
  );

  it('is stored separately for each account, domain and kind of tracking', async () => {
    const { repeat, sharedIds, tables, clock, stored } = start();
    insertAccount(tables, 'acct_two', clock.now());
    insertDomain(
      tables,
      { domain_id: 'domain_two', account_id: 'acct_two', name: 'example.com' },
      clock.now(),
    );
    await repeat(3);
    await repeat(3, { enableClickTracking: true });
    const ids = sharedIds();
    expect(ids[2]).not.toBe(ids[5]);
    expect(ids[5]).toEqual(expect.any(Number));
    expect(stored()).toHaveLength(6);
    await repeat(3, { from: 'shop@example.com' }, 'acct_two');
    const theirs = tables.messages.list({ accountId: 'acct_two', limit: 10 }).rows;
    const shared = theirs.map(({ content_id }) => tables.messages.content(content_id)?.shared_id ?? null);
    expect(shared[0]).toEqual(expect.any(Number));
    expect(ids).not.toContain(shared[0]);
  });

  it('is stored again when the values of the service have changed', async () => {
    const { repeat, sharedIds, contents, tables } = start();
    await repeat(3);
    const account = tables.accounts.get('acct_one');
    if (account === null) throw new Error('no account');
    tables.accounts.update({ ...account, company_name: 'Another company' });
    await repeat(3);
    const ids = sharedIds();
    expect(ids.map((id) => id === null)).toEqual([true, true, false, true, true, false]);
    expect(ids[5]).not.toBe(ids[2]);
    expect(contents()[0]?.html).toContain('Another company');
    expect(contents()[3]?.html).not.toContain('Another company');
  });

  it.each([
    ['several recipients', { to: ['ada@example.net', 'bob@example.net'] }],
    ['an attachment', { attachments: [{ name: 'a.txt', contentType: 'text/plain', content: 'YQ==' }] }],
    [
      'an invitation',
      { calendar: { method: 'REQUEST', content: 'BEGIN:VCALENDAR\nMETHOD:REQUEST\nEND:VCALENDAR' } },
    ],
    ['a raw variable', { html: `${HTML}{{{name}}}` }],
    ['text only', { html: undefined, text: TEXT.repeat(50) }],
  ] satisfies [string, Partial<SendRequest>][])('is not used with %s', async (_, changes) => {
    const { repeat, sharedIds } = start();
    await repeat(4, changes);
    expect(new Set(sharedIds())).toEqual(new Set([null]));
  });

  it('is not used for long values', async () => {
    const { repeat, sharedIds, contents, tables, stored } = start();
    await repeat(3);
    for (const [length, isShared] of [
      [2000, true],
      [4000, false],
      [20_000, false],
    ] as const) {
      const name = 'long '.repeat(length);
      await repeat(1, { templateVariables: { name, order: { number: 7 } } });
      expect(sharedIds().at(-1) !== null).toBe(isShared);
      expect(contents()[0]?.html).toContain(name);
      // All are compressed.
      const row = tables.messages.content(stored()[0]?.content_id ?? 0);
      expect(row?.bytes.byteLength).toBeLessThan(name.length / 4);
    }
  });

  it('is not used for a value that is inserted so often that the message is large', async () => {
    const { repeat, send, sharedIds, contents, tables, stored } = start();
    const html = `${HTML}${'{{name}}'.repeat(1000)}`;
    const large = { name: 'a value '.repeat(1000), order: { number: 7 } };
    await repeat(3, { html });
    await repeat(1, { html, templateVariables: large });
    expect(sharedIds().map((id) => id === null)).toEqual([true, true, false, true]);
    // Delivery limits the bytes of all contents that are being sent.
    const size = tables.messages.content(stored()[0]?.content_id ?? 0)?.size;
    expect(size).toBeGreaterThan(contents()[0]?.html.length ?? Infinity);
    const mail = {
      ...MAIL,
      html,
      text: html,
      templateVariables: { ...large, name: large.name.slice(0, 8000) },
    };
    accepted(await send(mail));
    expect(await send({ ...mail, attachments: [FILE] })).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
  });

  it('is not used for long texts, which are refused like those of a single one', async () => {
    const { send, sharedIds, repeat } = start();
    const html = `${HTML}${'text '.repeat(1_600_000)}`;
    for (let n = 0; n < 4; n++)
      expect(await send({ ...MAIL, html, text: html, attachments: [FILE] })).toMatchObject({
        code: 'PAYLOAD_TOO_LARGE',
      });
    await repeat(4, { html: `${HTML}${'text '.repeat(450_000)}` });
    await repeat(4, { html: HTML.repeat(1000), text: '{{company_address_text}}\n'.repeat(9000) });
    expect(new Set(sharedIds())).toEqual(new Set([null]));
  });

  it.each([
    ['a missing value', { order: { number: 7 } }],
    ['an object', { name: { first: 'Ada' }, order: { number: 7 } }],
    ['a line break in the subject', { name: 'Ada', order: { number: '7\n8' } }],
    ['several of them', {}],
    ['an object and a text that is too long', { name: {}, order: { number: '7'.repeat(8 * 1024 * 1024) } }],
  ])('is refused like a single one: %s', async (_, templateVariables) => {
    const { repeat, send, stored } = start();
    const single = await start().send({ ...MAIL, templateVariables });
    expect(isRefusal(single)).toBe(true);
    await repeat(3);
    expect(await send({ ...MAIL, templateVariables })).toEqual(single);
    expect(stored()).toHaveLength(3);
  });

  it('counts its messages, so that its texts are deleted with the last of them', async () => {
    const { repeat, sharedIds, stored, tables } = start();
    await repeat(4);
    const id = sharedIds()[3] ?? 0;
    const [last, third] = stored();
    tables.erasures.removeContent(third?.content_id ?? 0);
    expect(tables.sharedContents.get(id)).not.toBeNull();
    tables.erasures.removeContent(last?.content_id ?? 0);
    expect(tables.sharedContents.get(id)).toBeNull();
    // A later message stores them again, in another row.
    await repeat(1);
    expect(sharedIds().at(-1)).toBeGreaterThan(id);
  });

  it('keeps concurrent messages apart, also when some are not committed', async () => {
    let inserts = Number.NaN;
    const { send, stored, contents, tables, db } = start();
    const { insert } = tables.messages;
    vi.spyOn(tables.messages, 'insert').mockImplementation((row, sentAt) => {
      if (++inserts % 5 === 0) throw new Error('not stored');
      return insert(row, sentAt);
    });
    const sendTo = (n: number) =>
      send({
        ...MAIL,
        html: `${HTML}Template ${n % 3}`,
        to: `person${n}@example.net`,
        templateVariables: { name: `Person ${n}`, order: { number: n } },
      });
    // Each template is kept when it is sent again, and its texts are prepared after that. None of these fails: NaN is no
    // multiple of 5.
    for (const n of [90, 91, 92, 93, 94, 95, 96, 97, 98]) accepted(await sendTo(n));
    inserts = 0;
    const results = await Promise.allSettled(Array.from({ length: 90 }, (_, n) => sendTo(n)));
    expect(results.filter(({ status }) => status === 'rejected')).toHaveLength(18);
    expect(stored()).toHaveLength(81);
    for (const { html, subject, to } of contents()) {
      const n = Number(subject.slice('Order '.length));
      expect(to[0]?.address).toBe(`person${n}@example.net`);
      expect(html.match(/Person \d+|Template \d/g)).toEqual([
        `Person ${n}`,
        `Person ${n}`,
        `Template ${n % 3}`,
      ]);
    }
    const referring = stored().map(({ content_id }) => tables.messages.content(content_id)?.shared_id);
    const copies = db.prepare('SELECT shared_id AS id, copies FROM shared_contents').all();
    const counts = new Map<unknown, number>();
    for (const id of referring) if (id !== null) counts.set(id, (counts.get(id) ?? 0) + 1);
    expect(copies).toEqual(
      [...counts]
        .map(([id, count]) => ({ id, copies: count }))
        .toSorted((a, b) => Number(a.id) - Number(b.id)),
    );
    expect(copies).toHaveLength(3);
  });

  it('has the same row after a restart', async () => {
    const { repeat, sharedIds, restart } = start();
    await repeat(3);
    restart();
    await repeat(1, { html: `${HTML}Another template` });
    await repeat(3);
    const ids = sharedIds();
    expect(ids.map((id) => id === null)).toEqual([true, true, false, true, true, true, false]);
    expect(ids[6]).toBe(ids[2]);
  });

  it('is known to delivery when it gets the message', async () => {
    const contents: PackedContent[] = [];
    const { repeat, sharedIds, tables } = start({}, undefined, {
      leaseNow: (mail) => mail.map(() => ({ generation: 1, at: 1 })),
      accepted: (leased) => contents.push(...leased.map(({ content }) => content)),
    });
    await repeat(3);
    const [first, , third] = contents;
    expect(first?.sharedId).toBeUndefined();
    expect(third?.sharedId).toBe(sharedIds()[2]);
    expect(third?.size).toBeGreaterThan(tables.sharedContents.get(third?.sharedId ?? 0)?.size ?? Infinity);
  });
});
