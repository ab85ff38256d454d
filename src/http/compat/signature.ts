import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Authenticator, Caller } from '../../accounts/authenticate.ts';
import { callerBlock } from '../../accounts/caller-addresses.ts';
import { signingSecretSealContext } from '../../accounts/keys.ts';
import { MINUTE } from '../../core/clock.ts';
import type { Refusal } from '../../core/refusal.ts';
import { mac } from '../../core/seal.ts';
import type { Context } from '../../store/context.ts';
import type { Authenticate } from '../guard.ts';
import { authenticateSender, headerOf } from './provider.ts';

/*
 * Authentication by a signature (AWS signature version 4): an HMAC-SHA256 over the method, the path, some header fields and
 * the hash of the body, by a key that is derived from the secret, the day, a region and a service.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */

const ALGORITHM = 'AWS4-HMAC-SHA256';
/** The age and the lead that the time of a signature may have. */
const MAX_SKEW_MS = 15 * MINUTE;
/** Fields that must be signed. */
const REQUIRED = ['host', 'x-amz-date'];

/** Names of faults as AWS has them. */
type FaultName =
  | 'MissingAuthenticationTokenException'
  | 'IncompleteSignatureException'
  | 'UnrecognizedClientException'
  | 'SignatureDoesNotMatch';

interface Fault {
  fault: FaultName;
  message: string;
}

/** What a request states about its signature. */
interface StatedSignature {
  keyId: string;
  /** Day, region, service and `aws4_request`. */
  scope: readonly [day: string, region: string, service: string, end: string];
  /** `20260131T120000Z`. */
  date: string;
  signedHeaders: string;
  signature: Buffer;
  /** Hexadecimal, from `X-Amz-Content-Sha256`; null: the request does not have it. */
  bodyHash: string | null;
}

/**
 * Authentication by a signature for a service of any region. A request that states the hash of its body is verified before the
 * body is read, others after it. The name of a fault is that of the first detail of the refusal.
 */
export function bySignature(
  { clock, seal }: Pick<Context, 'clock' | 'seal'>,
  authenticator: Authenticator,
  service: string,
): Authenticate {
  return ({ req, search, from }, route) => {
    const refused = ({ fault, message }: Fault): Refusal =>
      authenticator.unauthenticated(from(), message, [{ field: 'Authorization', name: fault, message }]);
    const stated = signatureOf(req, search, service);
    if ('fault' in stated) return refused(stated);
    const outdated = skewOf(stated.date, clock.now());
    if (outdated !== null) return refused(outdated);
    const key = authenticator.signer(stated.keyId);
    if (key === null || key.signing_secret === null) return refused(UNKNOWN_KEY);
    const secret = seal.open(key.signing_secret, signingSecretSealContext(key.key_id));
    const isSigned = (bodyHash: string) =>
      timingSafeEqual(expectedSignature(req, route.path, stated, secret, bodyHash), stated.signature);
    if (stated.bodyHash !== null && !isSigned(stated.bodyHash)) return refused(OTHER_SIGNATURE);
    const { account_id: accountId, key_id: keyId } = key;
    return {
      // Anyone who knows the id of the key can send a body: it must not use the share of the account.
      owner:
        stated.bodyHash === null
          ? { accountId: `unverified ${accountId}`, keyId: callerBlock(from().address), countsAll: true }
          : { accountId, keyId, countsAll: true },
      callerOf: (hash): Caller | Refusal => {
        const bodyHash = hash.toString('hex');
        if (stated.bodyHash === null ? !isSigned(bodyHash) : bodyHash !== stated.bodyHash)
          return refused(OTHER_SIGNATURE);
        return authenticateSender((scope) => authenticator.admit(key, from(), scope), route.scope);
      },
    };
  };
}

const UNKNOWN_KEY: Fault = {
  fault: 'UnrecognizedClientException',
  message: 'The security token included in the request is invalid: no key with this id signs requests',
};

const OTHER_SIGNATURE: Fault = {
  fault: 'SignatureDoesNotMatch',
  message:
    'The request signature we calculated does not match the signature you provided. Check the secret access key, and that a proxy changes neither the path nor Host',
};

function incomplete(message: string): Fault {
  return { fault: 'IncompleteSignatureException', message };
}

/** What the header fields state, or why it is refused. Each field that is signed must occur once. */
function signatureOf(req: IncomingMessage, search: string, service: string): StatedSignature | Fault {
  const fields = req.headersDistinct;
  if (fields['x-amz-security-token'] !== undefined)
    return {
      fault: 'UnrecognizedClientException',
      message:
        'Session tokens (X-Amz-Security-Token) are not supported: use a key of "postrider key create --sigv4"',
    };
  const authorization = fields['authorization'];
  if (authorization === undefined)
    return { fault: 'MissingAuthenticationTokenException', message: 'Missing Authentication Token' };
  if (search !== '') return incomplete('Signed requests have no query parameters here');
  const [text = '', ...others] = authorization;
  const [, credential = '', signedHeaders = '', signature = ''] =
    /^AWS4-HMAC-SHA256 +Credential=([^\s,]+), *SignedHeaders=([^\s,]+), *Signature=([0-9a-f]{64})$/.exec(
      text,
    ) ?? [];
  if (signature === '' || others.length > 0)
    return incomplete(
      `Authorization must be "${ALGORITHM} Credential=…, SignedHeaders=…, Signature=…", once`,
    );
  const [keyId = '', day = '', region = '', ofService = '', end = '', ...rest] = credential.split('/');
  if (ofService !== service || end !== 'aws4_request' || rest.length > 0)
    return incomplete(
      `Credential must be scoped to ${service}: <key id>/<day>/<region>/${service}/aws4_request`,
    );
  const names = signedHeaders.split(';');
  const missing = REQUIRED.find((name) => !names.includes(name));
  if (missing !== undefined) return incomplete(`SignedHeaders must name ${missing}`);
  if (names.some((name, index) => index > 0 && name <= (names[index - 1] ?? '')))
    return incomplete('SignedHeaders must be in lower case, sorted, each once');
  const repeated = names.find((name) => fields[name]?.length !== 1);
  if (repeated !== undefined)
    return incomplete(`The signed header field "${repeated.slice(0, 64)}" must occur once in the request`);
  const date = headerOf(req, 'x-amz-date');
  if (date.slice(0, 8) !== day) return incomplete('The day in Credential must be that of X-Amz-Date');
  const bodyHash = fields['x-amz-content-sha256'];
  if (bodyHash !== undefined && !names.includes('x-amz-content-sha256'))
    return incomplete('SignedHeaders must name x-amz-content-sha256');
  const [hash = null] = bodyHash ?? [];
  if (hash !== null && !/^[0-9a-f]{64}$/.test(hash))
    return incomplete('X-Amz-Content-Sha256 must be the SHA-256 of the body: unsigned bodies are refused');
  return {
    keyId,
    scope: [day, region, ofService, end],
    date,
    signedHeaders,
    signature: Buffer.from(signature, 'hex'),
    bodyHash: hash,
  };
}

/** Null: the time of the signature is close enough to `now`. */
function skewOf(date: string, now: number): Fault | null {
  const at = Date.parse(
    date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z').slice(0, 30),
  );
  if (Number.isNaN(at)) return incomplete('X-Amz-Date must be a time such as 20260131T120000Z');
  if (Math.abs(now - at) <= MAX_SKEW_MS) return null;
  const why =
    at < now
      ? `Signature expired: ${date} is more than 15 minutes ago`
      : `Signature not yet current: ${date}`;
  return { fault: 'SignatureDoesNotMatch', message: `${why}. Check the clock of the client` };
}

/** `path`: of the route, which the router compared with that of the request. */
function expectedSignature(
  req: IncomingMessage,
  path: string,
  { scope, date, signedHeaders }: StatedSignature,
  secret: Buffer,
  bodyHash: string,
): Buffer {
  const headers = signedHeaders.split(';').map((name) => `${name}:${canonical(headerOf(req, name))}\n`);
  const request = [req.method, path, '', headers.join(''), signedHeaders, bodyHash].join('\n');
  // Node has read the bytes of the fields as Latin-1.
  const requestHash = createHash('sha256').update(request, 'latin1').digest('hex');
  const first = Buffer.concat([Buffer.from('AWS4'), secret]);
  const key = scope.reduce<Buffer>((above, part) => mac(above, part), first);
  return mac(key, [ALGORITHM, date, scope.join('/'), requestHash].join('\n'));
}

/** Without white space around it, and with single spaces within. */
function canonical(value: string): string {
  return value.trim().replace(/\s+/g, ' ');
}
