import { afterAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { exifSegment, GIF, JPEG, jpegWith, png, pngOfSize, WEBP, ZIP } from '../../support/images.ts';
import { startInProcess } from '../../support/in-process-daemon.ts';
import { insertDomain } from '../../support/store.ts';

// Starts the whole daemon, which is slow on a busy machine.
const daemon = await startInProcess({ 'public.url': 'http://127.0.0.1:0' });
afterAll(() => daemon.stop());

const MEDIA = '/web-setup/media';

interface Media {
  mediaId: string;
  name: string;
  alt: string;
  url: string;
  contentType: string;
  width: number;
  height: number;
  animated: boolean;
  size: number;
}

async function start() {
  const api = await daemon.account('A');
  const upload = async (file: Buffer | FormData, query = '', type?: string) => {
    const response = await fetch(`${daemon.url}${MEDIA}${query}`, {
      method: 'POST',
      headers: {
        'X-Api-Key': api.keys.setup,
        'X-Id': api.accountId,
        ...(type === undefined ? {} : { 'Content-Type': type }),
      },
      body: file instanceof FormData ? file : new Uint8Array(file),
    });
    return {
      status: response.status,
      ...((await response.json()) as { data: { media: Media }; error: Fault }),
    };
  };
  const stored = () => ({
    contents: daemon.tables.media.unfinished('deleting', 10).length,
    bytes: daemon.tables.accountLimits.storedBytes(api.accountId),
  });
  return { api, upload, stored };
}

interface Fault {
  code: string;
  message: string;
  details: { field: string; name?: string; message: string }[];
}

const formWith = (fields: Record<string, string | Blob>, fileName = 'photo.jpg') => {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields))
    if (typeof value === 'string') form.append(name, value);
    else form.append(name, value, fileName);
  return form;
};

describe('images over HTTP', () => {
  it('are uploaded, listed, found, updated, served and deleted', async () => {
    const { api, upload } = await start();
    const { status, data } = await upload(png(), '?filename=logo.png&alt=Our%20logo', 'image/png');
    const { media } = data;
    expect(status).toBe(201);
    expect(media).toEqual({
      mediaId: expect.stringMatching(/^media_\d{13}_[0-9a-z]{12}$/),
      name: 'logo.png',
      alt: 'Our logo',
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/m\/[A-Za-z0-9]{43}\.png$/),
      contentType: 'image/png',
      width: 3,
      height: 2,
      animated: false,
      size: png().length,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    const path = `${MEDIA}/${media.mediaId}`;
    const served = await fetch(media.url);
    expect([served.status, Buffer.from(await served.arrayBuffer()).equals(png())]).toEqual([200, true]);
    const changed = await api.call('PATCH', path, { body: { alt: '' } });
    expect(changed.data).toMatchObject({ media: { name: 'logo.png', alt: '' } });
    const other = (await upload(GIF, '?filename=C:%5Cfiles%5Ca.gif')).data.media;
    expect(other).toMatchObject({ name: 'a.gif', animated: true });
    const list = (await api.get<{ media: Media[] }>(`${MEDIA}?search=LOGO`)).data.media;
    expect(list.map(({ mediaId }) => mediaId)).toEqual([media.mediaId]);
    const first = (await api.get<{ media: Media[]; nextKey: string }>(`${MEDIA}?limit=1`)).data;
    expect(first.media[0]?.mediaId).toBe(other.mediaId);
    const second = (await api.get<{ media: Media[] }>(`${MEDIA}?limit=1&lastKey=${first.nextKey}`)).data;
    expect(second.media[0]?.mediaId).toBe(media.mediaId);
    expect((await api.call('DELETE', path)).status).toBe(200);
    expect((await fetch(media.url)).status).toBe(404);
    expect((await api.call('GET', path)).error.code).toBe('MEDIA_NOT_FOUND');
    expect((await fetch(other.url)).status).toBe(200);
  });

  it('are sent as a form as well', async () => {
    const { upload } = await start();
    const file = new Blob([new Uint8Array(jpegWith(exifSegment(1)))], { type: 'text/plain' });
    const { data } = await upload(formWith({ alt: 'Café', file }));
    expect(data.media).toMatchObject({
      name: 'photo.jpg',
      alt: 'Café',
      contentType: 'image/jpeg',
      size: JPEG.length,
    });
    const { error } = await upload(formWith({ image: file }));
    expect([error.code, error.details[0]?.field]).toEqual(['VALIDATION_ERROR', 'file']);
    const many = formWith(Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`field${n}`, 'x'])));
    expect((await upload(many)).error.message).toContain('more than 10 fields');
    const type = 'multipart/form-data; boundary=x';
    expect((await upload(Buffer.from('--x\r\n'), '', type)).error.details[0]?.field).toBe('file');
    expect((await upload(png(), '', 'multipart/form-data')).error.details[0]?.field).toBe('file');
  });

  it('are refused with the field, and leave nothing, if they are something else', async () => {
    const { upload, stored } = await start();
    const before = stored();
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>');
    for (const [file, type] of [
      [svg, 'image/svg+xml'],
      [svg, 'image/png'],
      [Buffer.concat([png(), ZIP]), 'image/png'],
      [JPEG.subarray(0, 200), 'image/jpeg'],
      [png({ width: 60_000, height: 60_000 }), 'image/png'],
      [Buffer.from('{"url":"https://example.com/a.png"}'), 'application/json'],
      [Buffer.alloc(0), 'image/png'],
    ] as const) {
      const { status, error } = await upload(file, '', type);
      expect([status, error.code, error.details[0]?.field]).toEqual([400, 'VALIDATION_ERROR', 'file']);
    }
    const large = pngOfSize(5 * 2 ** 20 + 1);
    expect(await upload(large)).toMatchObject({ status: 413, error: { code: 'PAYLOAD_TOO_LARGE' } });
    const form = formWith({ file: new Blob([new Uint8Array(large)]) });
    expect(await upload(form)).toMatchObject({ status: 413, error: { details: [{ field: 'file' }] } });
    expect((await upload(Buffer.alloc(6 * 2 ** 20))).status).toBe(413);
    expect((await upload(png(), '?filename=a.png&name=%00')).error.details[0]?.field).toBe('name');
    expect(stored()).toEqual(before);
  });

  it('with the same content are stored once, and freed with the last one', async () => {
    const { api, upload, stored } = await start();
    const before = stored().bytes;
    const file = pngOfSize(5 * 2 ** 20);
    // At the same time: only one of the contents stays.
    const all = await Promise.all([1, 2, 3].map(() => upload(file, '?name=a')));
    expect(all.map(({ status }) => status)).toEqual([201, 201, 201]);
    const added = file.length + 200 + 3 * 201;
    await eventually('only one content is stored', () => stored().bytes - before === added);
    const links = new Set(all.map(({ data }) => data.media.url));
    expect(links.size).toBe(3);
    for (const { data } of all) {
      const served = await fetch(data.media.url);
      expect(Buffer.from(await served.arrayBuffer()).equals(file)).toBe(true);
      await api.call('DELETE', `${MEDIA}/${data.media.mediaId}`);
    }
    await eventually('the content is deleted', () => stored().bytes === before);
  });

  it('that something uses are deleted only if it is forced', async () => {
    const { api, upload } = await start();
    const { url, mediaId } = (await upload(WEBP)).data.media;
    const html = `<img src="${url}">{{unsubscribe_email_html}}`;
    const { data } = await api.post<{ template: { templateId: string } }>('/web-setup/templates', {
      name: 'News',
      html,
    });
    const refused = await api.call('DELETE', `${MEDIA}/${mediaId}`);
    expect([refused.status, refused.error.code, refused.error.details]).toEqual([
      409,
      'MEDIA_IN_USE',
      [{ field: 'templateId', name: data.template.templateId, message: 'News' }],
    ]);
    expect((await fetch(url)).status).toBe(200);
    expect((await api.call('DELETE', `${MEDIA}/${mediaId}?force=true`)).status).toBe(200);
    expect((await fetch(url)).status).toBe(404);
  });

  it('of other accounts are not visible', async () => {
    const { upload } = await start();
    const other = await start();
    const { mediaId } = (await upload(png())).data.media;
    for (const [method, body] of [
      ['GET', undefined],
      ['PATCH', { name: 'x' }],
      ['DELETE', undefined],
    ] as const) {
      const { status } = await other.api.call(
        method,
        `${MEDIA}/${mediaId}`,
        body === undefined ? {} : { body },
      );
      expect(status).toBe(404);
    }
    expect((await other.api.get<{ media: Media[] }>(MEDIA)).data.media).toEqual([]);
  });
});

describe('the public address of an image', () => {
  it('is stored for a year, shown as an image only, and answers 304', async () => {
    const { upload } = await start();
    const { url } = (await upload(png({ seed: 7 }))).data.media;
    const served = await fetch(url);
    const headers = Object.fromEntries(served.headers);
    expect(headers).toMatchObject({
      'content-type': 'image/png',
      'content-length': String(png({ seed: 7 }).length),
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
    });
    expect(headers).not.toHaveProperty('access-control-allow-origin');
    const head = await fetch(url, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length')]).toEqual([200, headers['content-length']]);
    const again = await fetch(url, { headers: { 'If-None-Match': headers['etag'] ?? '' } });
    expect([again.status, await again.text()]).toEqual([304, '']);
    for (const wrong of [url.replace('.png', '.jpg'), url.replace('.png', ''), `${url}x`, url.slice(0, -5)])
      expect((await fetch(wrong)).status).toBe(404);
    expect((await fetch(url, { method: 'POST' })).status).toBe(405);
  });

  it('has the link host of the oldest domain that has one', async () => {
    const { api, upload } = await start();
    const [group] = daemon.tables.domainGroups.list(api.accountId);
    const domain = (id: string, host: string | null, age: number) =>
      insertDomain(
        daemon.tables,
        {
          account_id: api.accountId,
          group_id: group?.group_id ?? '',
          domain_id: `domain_${id}`,
          name: `${id}.test`,
          tracking_host: host,
          created_at: Date.now() - age,
          next_check_at: Date.now() + DAY,
        },
        Date.now(),
      );
    domain('oldest', null, 3000);
    domain('newest', 'link.newest.test', 1000);
    domain('second', 'link.second.test', 2000);
    expect((await upload(png())).data.media.url).toMatch(/^http:\/\/link\.second\.test:\d+\/m\//);
  });
});
