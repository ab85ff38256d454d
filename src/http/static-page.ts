import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { HttpResponse, OpenRequest } from './route.ts';

const compress = promisify(gzip);

/** A body in the form that a client accepts. */
interface PageForm {
  body: Buffer;
  etag: string;
  encoding: Record<string, string>;
}

/**
 * A constant page, written by `write` for the first request: all responses share one plain and one compressed buffer,
 * with an entity tag (RFC 9110 §8.8.3). An error of `write` rejects every request.
 */
export function staticPage(
  contentType: string,
  write: () => Promise<string>,
  headers: Record<string, string> = {},
): (request: OpenRequest) => Promise<HttpResponse> {
  let forms: Promise<{ plain: PageForm; gzip: PageForm }> | null = null;
  return async ({ headers: request }) => {
    forms ??= write().then(formsOf);
    const { plain, gzip } = await forms;
    const { body, etag, encoding } = acceptsCoding(request['accept-encoding'], 'gzip') ? gzip : plain;
    const common = { ...headers, ETag: etag, Vary: 'Accept-Encoding' };
    if (matchesTag(request['if-none-match'], etag)) {
      return { status: 304, contentType: '', body: '', headers: common };
    }
    return { status: 200, contentType, body, headers: { ...common, ...encoding } };
  };
}

async function formsOf(text: string): Promise<{ plain: PageForm; gzip: PageForm }> {
  const plain = Buffer.from(text);
  const digest = createHash('sha256').update(plain).digest('base64url').slice(0, 22);
  return {
    plain: { body: plain, etag: `"${digest}"`, encoding: {} },
    gzip: {
      body: await compress(plain),
      etag: `"${digest}-gzip"`,
      encoding: { 'Content-Encoding': 'gzip' },
    },
  };
}

const CODINGS = {
  gzip: /^\s*(?:gzip|\*)\s*(?:;\s*q=(?!0(?:\.0*)?\s*$).*)?$/,
  br: /^\s*br\s*(?:;\s*q=(?!0(?:\.0*)?\s*$).*)?$/,
};

/** Whether a client accepts a content coding: RFC 9110 §12.5.3; no other part of the field makes it unacceptable. */
export function acceptsCoding(field: string | string[] | undefined, coding: keyof typeof CODINGS): boolean {
  return String(field ?? '')
    .toLowerCase()
    .split(',')
    .some((entry) => CODINGS[coding].test(entry));
}

/** Whether `If-None-Match` has the entity tag: RFC 9110 §13.1.2, by weak comparison. */
export function matchesTag(field: string | undefined, etag: string): boolean {
  if (field === undefined) return false;
  return field
    .split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
    .some((tag) => tag === '*' || tag === etag);
}
