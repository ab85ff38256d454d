import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { OpenRequest, OpenResponse } from './route.ts';

/**
 * A constant page: all responses share one plain and one compressed buffer, with an entity tag (RFC 9110 §8.8.3).
 */
export function staticPage(
  contentType: string,
  text: string,
  headers: Record<string, string> = {},
): (request: OpenRequest) => OpenResponse {
  const plain = Buffer.from(text);
  const gzipped = gzipSync(plain);
  const digest = createHash('sha256').update(plain).digest('base64url').slice(0, 22);
  const forms = {
    plain: { body: plain, etag: `"${digest}"`, encoding: {} },
    gzip: { body: gzipped, etag: `"${digest}-gzip"`, encoding: { 'Content-Encoding': 'gzip' } },
  };
  return ({ headers: request }) => {
    const { body, etag, encoding } = acceptsGzip(request['accept-encoding']) ? forms.gzip : forms.plain;
    const common = { ...headers, ETag: etag, Vary: 'Accept-Encoding', 'Cache-Control': 'no-cache' };
    if (matches(request['if-none-match'], etag)) {
      return { status: 304, contentType: '', body: '', headers: common };
    }
    return { status: 200, contentType, body, headers: { ...common, ...encoding } };
  };
}

/** RFC 9110 §12.5.3; no other part of the field makes gzip unacceptable. */
function acceptsGzip(field: string | string[] | undefined): boolean {
  return String(field ?? '')
    .toLowerCase()
    .split(',')
    .some((coding) => /^\s*(?:gzip|\*)\s*(?:;\s*q=(?!0(?:\.0*)?\s*$).*)?$/.test(coding));
}

/** RFC 9110 §13.1.2, by weak comparison. */
function matches(field: string | undefined, etag: string): boolean {
  if (field === undefined) return false;
  return field
    .split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
    .some((tag) => tag === '*' || tag === etag);
}
