import { describe, expect, it } from 'vitest';
import { BROWSER, startPublic } from './rig.ts';

const INVALID_TOKENS = [
  ['nothing', ''],
  ['an invalid one', 'abc'],
  ['a long one', 'A'.repeat(20_000)],
  ['percent signs', '%00%ff%2e%2e'],
  ['dots', '...'],
] as const;

describe('the open tracking image', () => {
  it('is one transparent pixel that is not cached', async () => {
    const { call, tokens, sent } = await startPublic();
    const { message } = sent();
    const { status, headers, bytes } = await call(
      `/o/${tokens.of('acct_one').openUrl(message.message_id)}.gif`,
    );
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([
      200,
      'image/gif',
      'no-store',
    ]);
    expect(bytes.subarray(0, 10)).toEqual(Buffer.from('GIF89a\u0001\u0000\u0001\u0000', 'latin1'));
    expect(bytes.at(-1)).toBe(0x3b);
  });

  it.each(INVALID_TOKENS)('is the same for the token %s', async (_, token) => {
    const { call, settle, events } = await startPublic();
    const answer = await call(`/o/${token}.gif`);
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'image/gif']);
    await settle();
    expect(events()).toEqual([]);
  });

  it('records the visitor', async () => {
    const { call, tokens, sent, settle, events } = await startPublic();
    const { message } = sent();
    const path = `/o/${tokens.of('acct_one').openUrl(message.message_id)}.gif`;
    await call(path);
    await call(path, { headers: { 'User-Agent': 'Mozilla/5.0 (via ggpht.com GoogleImageProxy)' } });
    await call(path, { method: 'HEAD' });
    await settle();
    expect(events()).toMatchObject([
      {
        event: 'email_opened',
        ip: '127.0.0.1',
        userAgent: BROWSER,
        isBot: false,
        isProxy: false,
        isFirst: true,
      },
      { event: 'email_opened', isBot: false, isProxy: true, isFirst: false },
    ]);
  });
});

describe('a tracked link', () => {
  it.each([
    'https://x.example/?a=1&b=2#c',
    'http://x.example',
    'HTTPS://X.EXAMPLE:8443/a%20b?q=%E4%B8%AD',
    'https://x.example/a\'b"c<d>{e}|f^g`h\\i',
    'https://user:secret@x.example/',
    `https://x.example/${'x'.repeat(8000)}`,
  ])('redirects to exactly %s', async (url) => {
    const { call, clickUrl, sent } = await startPublic();
    const { status, headers, body } = await call(clickUrl(sent().message.message_id, url));
    expect([status, headers['location'], body]).toEqual([302, url, '']);
    expect(headers['set-cookie']).toBeUndefined();
    expect(headers['cache-control']).toBe('no-store');
  });

  it('redirects with an added query, and for HEAD', async () => {
    const { call, clickUrl, sent } = await startPublic();
    const path = clickUrl(sent().message.message_id, 'https://x.example/');
    expect((await call(`${path}?fbclid=1&utm_source=x`)).headers['location']).toBe('https://x.example/');
    expect(await call(path, { method: 'HEAD' })).toMatchObject({
      status: 302,
      headers: { location: 'https://x.example/' },
    });
  });

  it('records the URL and the first click', async () => {
    const { call, clickUrl, sent, settle, events } = await startPublic();
    const { message } = sent();
    await call(clickUrl(message.message_id, 'https://x.example/?a=1'));
    await call(clickUrl(message.message_id, 'https://y.example/'));
    await call(clickUrl(message.message_id, 'https://x.example/?a=1'), { method: 'HEAD' });
    await settle();
    expect(events()).toMatchObject([
      {
        event: 'email_clicked',
        messageId: message.message_id,
        url: 'https://x.example/?a=1',
        isBot: false,
        isFirst: true,
      },
      { event: 'email_clicked', url: 'https://y.example/', isFirst: false },
      { event: 'email_clicked', isBot: true },
    ]);
  });

  it('redirects after its message was purged, and without the database', async () => {
    const { call, clickUrl, sent, writer, settle } = await startPublic();
    const purged = clickUrl('msg_1600000000000_abcdefghijkl', 'https://x.example/');
    expect((await call(purged)).headers['location']).toBe('https://x.example/');
    const kept = clickUrl(sent().message.message_id, 'https://x.example/');
    await writer.close();
    expect((await call(kept)).headers['location']).toBe('https://x.example/');
    await settle();
  });
});

describe('a tracked link under a host of a customer', () => {
  const LOCATION = 'https://x.example/';
  async function visit(
    madeFor: string,
    headers: Record<string, string>,
    settings: Record<string, string> = {},
  ) {
    const { call, clickUrl, sent } = await startPublic(settings);
    const path = clickUrl(sent().message.message_id, LOCATION, madeFor);
    return (await call(path, { headers })).headers['location'] ?? null;
  }

  it.each<[host: string, madeFor: string, location: string | null]>([
    ['link.example.com', 'link.example.com', LOCATION],
    ['LINK.example.com:8443', 'link.example.com', LOCATION],
    ['link.example.com.', 'link.example.com', LOCATION],
    ['link.example.com', 'link.example.org', null],
    ['LINK.example.com.:443', 'link.example.org', null],
    ['link.example.com', 'track.mail.example', null],
    ['track.mail.example', 'link.example.org', LOCATION],
    ['127.0.0.1:8081', 'link.example.org', LOCATION],
    ['', 'link.example.org', LOCATION],
  ])('%s redirects a link created for %s to %s', async (host, madeFor, location) => {
    expect(await visit(madeFor, { Host: host })).toBe(location);
  });

  it('uses the original host of a trusted proxy', async () => {
    const headers = { Host: 'postrider', 'X-Forwarded-Host': 'link.example.com' };
    const trusting = { POSTRIDER_PUBLIC__TRUSTEDPROXIES: '["127.0.0.1"]' };
    expect(await visit('link.example.org', headers, trusting)).toBeNull();
    expect(await visit('link.example.com', headers, trusting)).toBe(LOCATION);
    // The header of other clients is ignored.
    expect(await visit('link.example.org', headers)).toBe(LOCATION);
  });
});

describe('no open redirect', () => {
  const nowhere = async (rig: Awaited<ReturnType<typeof startPublic>>, path: string) => {
    const { status, headers, body } = await rig.call(path);
    expect([path, status, headers['location']]).toEqual([path, 404, undefined]);
    return body;
  };

  it.each(INVALID_TOKENS)('redirects nowhere for the token %s', async (_, token) => {
    await nowhere(await startPublic(), `/c/${token}`);
  });

  it.each([
    '/c?url=https://x.example/',
    '/c/https://x.example/',
    '/c/aHR0cHM6Ly94LmV4YW1wbGUv',
    '//x.example/',
    '/c//x.example',
  ])('by %s', async (path) => {
    await nowhere(await startPublic(), path);
  });

  it('redirects nowhere for a token that is truncated, modified, combined, or for another purpose', async () => {
    const rig = await startPublic();
    const { message, mail } = rig.sent();
    const good = rig.clickUrl(message.message_id, 'https://good.example/').slice(3);
    const other = rig.clickUrl(message.message_id, 'https://evil.example/').slice(3);
    for (let at = 0; at < good.length; at += 5) {
      await nowhere(rig, `/c/${good.slice(0, at)}${good[at] === 'A' ? 'B' : 'A'}${good.slice(at + 1)}`);
    }
    for (let at = 30; at < good.length - 1; at += 5) {
      await nowhere(rig, `/c/${good.slice(0, at)}`);
      const mixed = good.slice(0, at) + other.slice(at);
      if (mixed !== good && mixed !== other) await nowhere(rig, `/c/${mixed}`);
    }
    const body = await nowhere(rig, `/c/${rig.tokens.of('acct_one').unsubscribeUrl(mail)}`);
    await nowhere(rig, `/c/${rig.tokens.of('acct_one').openUrl(message.message_id)}`);
    expect(body).toContain('This link does not work');
    await rig.settle();
    expect(rig.events()).toEqual([]);
  });

  it('redirects nowhere for a signed value that is not a web address', async () => {
    const rig = await startPublic();
    for (const url of ['javascript:alert(1)', 'ftp://x.example/', '//x.example/', '', 'data:text/html,x'])
      await nowhere(rig, rig.clickUrl(rig.sent().message.message_id, url));
  });
});
