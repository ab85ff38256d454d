// Long: uploads 10,000 images.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MAX_MEDIA } from '../../src/media/media.ts';
import type { ApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { png, ZIP } from '../support/images.ts';
import { type InProcess, PLATFORM, startInProcess } from '../support/in-process-daemon.ts';
import { insertDomainOf } from '../support/store.ts';

const MEDIA = '/web-setup/media';
/** Uploads at the same time. */
const CONCURRENT = 20;
/** More than an account may have. */
const UPLOADS = MAX_MEDIA + 3 * CONCURRENT;
/** Bytes that are counted for a content and for an image with a name of one character. */
const ROW_BYTES = 200 + 201;

let daemon: InProcess;
beforeAll(async () => {
  daemon = await startInProcess({ 'public.url': 'http://127.0.0.1:0' });
});
afterAll(() => daemon?.stop());

interface Upload {
  status: number;
  code: string | undefined;
  url: string;
}

async function upload({ accountId, keys }: ApiClient, file: Buffer): Promise<Upload> {
  const response = await fetch(`${daemon.url}${MEDIA}?name=a`, {
    method: 'POST',
    headers: { 'X-Api-Key': keys.setup, 'X-Id': accountId },
    body: new Uint8Array(file),
  });
  const { data, error } = (await response.json()) as {
    data?: { media: { url: string } };
    error?: { code: string };
  };
  return { status: response.status, code: error?.code, url: data?.media.url ?? '' };
}

/** 10,000 requests take minutes on a busy machine. */
const TIMEOUT_MS = 900_000;

it('10,000 uploads of one account are contained: limits, bytes, lists, other accounts and mail', {
  timeout: TIMEOUT_MS,
}, async () => {
  const hostile = await daemon.account('Hostile');
  const other = await daemon.account('Other');
  insertDomainOf(daemon, other, { domain_id: 'domain_1', name: 'shop.test' });
  const bytesOf = (api: ApiClient) => daemon.tables.accountLimits.storedBytes(api.accountId);
  const [before, otherBefore] = [bytesOf(hostile), bytesOf(other)];
  const codes = new Map<string, number>();
  let next = 0;
  let bytes = 0;
  const flood = async () => {
    while (next < UPLOADS) {
      const seed = next++;
      // A hundredth is something else, and is refused without a trace.
      const isWrong = seed % 100 === 99;
      const image = png({ seed });
      const { status, code = 'stored' } = await upload(
        hostile,
        isWrong ? Buffer.concat([image, ZIP]) : image,
      );
      codes.set(code, (codes.get(code) ?? 0) + 1);
      if (status === 201) bytes += image.length + ROW_BYTES;
    }
  };
  let isOver = false;
  const floods = Promise.all(Array.from({ length: CONCURRENT }, flood)).then(() => {
    isOver = true;
  });

  // Another account works meanwhile.
  const sent: string[] = [];
  let uploaded = 0;
  for (let n = 0; n < 20; n++) {
    const mail = {
      from: 'shop@shop.test',
      to: `delivered@simulator.${PLATFORM}`,
      subject: 'Order',
      html: '<p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
    };
    sent.push((await other.send(mail)).data.messageId);
    const { status, url } = await upload(other, png({ seed: 1_000_000 + n }));
    if (status === 201 && (await fetch(url)).status === 200) uploaded++;
  }
  await eventually('the mail of the other account is delivered', async () => {
    const messages = await other.allMessages();
    return messages.filter(({ status }) => status === 'delivered').length === sent.length;
  });
  expect(isOver, 'the other account worked during the uploads').toBe(false);
  expect(uploaded).toBe(20);
  await floods;

  const wrong = Math.floor(UPLOADS / 100);
  const stored = Math.min(MAX_MEDIA, UPLOADS - wrong);
  expect(codes.get('stored')).toBe(stored);
  expect(codes.get('VALIDATION_ERROR')).toBe(wrong);
  expect(
    [...codes.keys()].filter((code) => !['stored', 'VALIDATION_ERROR', 'LIMIT_REACHED'].includes(code)),
  ).toEqual([]);
  // Fill up what is left, and one more.
  while (daemon.tables.media.count(hostile.accountId) < MAX_MEDIA) {
    const image = png({ seed: next++ });
    expect((await upload(hostile, image)).status).toBe(201);
    bytes += image.length + ROW_BYTES;
  }
  expect(await upload(hostile, png({ seed: next }))).toMatchObject({ status: 409, code: 'LIMIT_REACHED' });
  await eventually('only stored images are counted', () => bytesOf(hostile) - before === bytes);
  expect(daemon.tables.media.unfinished('storing', 1)).toEqual([]);
  expect(bytesOf(other)).toBeGreaterThan(otherBefore);

  const seen = new Set<string>();
  let pages = 0;
  for (let key: string | undefined = ''; key !== undefined; pages++) {
    const query: string = key === '' ? '' : `&lastKey=${encodeURIComponent(key)}`;
    const page = await hostile.get<{ media: { mediaId: string }[]; nextKey?: string }>(
      `${MEDIA}?limit=100${query}`,
    );
    expect(page.data.media.length).toBeLessThanOrEqual(100);
    for (const { mediaId } of page.data.media) seen.add(mediaId);
    key = page.data.nextKey;
  }
  expect([seen.size, pages]).toEqual([MAX_MEDIA, MAX_MEDIA / 100]);
  expect((await other.get<{ media: object[] }>(MEDIA)).data.media).toHaveLength(20);
});
