import { createHash, createHmac } from 'node:crypto';

/* AWS signature version 4, as clients of it sign, and with the faults that tests need. */

export interface Signing {
  keyId: string;
  secret: string;
  host: string;
  path: string;
  body: string;
  at: Date;
  method?: string;
  region?: string;
  service?: string;
  /** Further signed header fields. */
  signed?: Record<string, string>;
  /** `X-Amz-Content-Sha256`; null: the request does not have it. Default: the hash of the body. */
  statedHash?: string | null;
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();

/** The header fields of a signed request, `host` included. */
export function signedHeaders(signing: Signing): Record<string, string> {
  const {
    keyId,
    secret,
    host,
    path,
    body,
    method = 'POST',
    region = 'eu-central-1',
    service = 'ses',
  } = signing;
  const date = signing.at.toISOString().replace(/\.\d+|[-:]/g, '');
  const hash = signing.statedHash === undefined ? sha256(body) : signing.statedHash;
  const fields: Record<string, string> = {
    ...signing.signed,
    host,
    'x-amz-date': date,
    ...(hash === null ? {} : { 'x-amz-content-sha256': hash }),
  };
  const names = Object.keys(fields).sort();
  const canonical = [
    method,
    path,
    '',
    ...names.map((name) => `${name}:${fields[name]?.trim().replace(/\s+/g, ' ')}`),
    '',
    names.join(';'),
    hash ?? sha256(body),
  ].join('\n');
  const scope = [date.slice(0, 8), region, service, 'aws4_request'];
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${secret}`);
  const signature = hmac(key, ['AWS4-HMAC-SHA256', date, scope.join('/'), sha256(canonical)].join('\n'));
  return {
    ...fields,
    authorization: `AWS4-HMAC-SHA256 Credential=${keyId}/${scope.join('/')}, SignedHeaders=${names.join(';')}, Signature=${signature.toString('hex')}`,
  };
}
