import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/** An authenticator in software: creates a passkey and signs challenges (WebAuthn Level 2, ES256, no attestation). */
export interface Authenticator {
  id: string;
  /** The response to the options of a registration. */
  register(options: { challenge: string }): object;
  /** The response to the options of an authentication. */
  authenticate(options: { challenge: string }, change?: { counter?: number; flags?: number }): object;
}

/** User present, user verified, and attested credential data. */
const PRESENT = 0x01;
const VERIFIED = 0x04;
const ATTESTED = 0x40;

export function createAuthenticator(origin: string): Authenticator {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const credentialId = randomBytes(32);
  const id = credentialId.toString('base64url');
  const rpIdHash = createHash('sha256').update(new URL(origin).hostname).digest();
  let uses = 0;

  const clientData = (type: string, challenge: string) =>
    Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
  const authenticatorData = (flags: number, counter: number, more = Buffer.alloc(0)) => {
    const count = Buffer.alloc(4);
    count.writeUInt32BE(counter);
    return Buffer.concat([rpIdHash, Buffer.from([flags]), count, more]);
  };

  return {
    id,
    register: ({ challenge }) => {
      const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
      const length = Buffer.alloc(2);
      length.writeUInt16BE(credentialId.length);
      // A COSE key (RFC 9053 §7.1): EC2, ES256, P-256.
      const key = cbor(
        new Map<number, Value>([
          [1, 2],
          [3, -7],
          [-1, 1],
          [-2, Buffer.from(x, 'base64url')],
          [-3, Buffer.from(y, 'base64url')],
        ]),
      );
      const attested = Buffer.concat([Buffer.alloc(16), length, credentialId, key]);
      const authData = authenticatorData(PRESENT | VERIFIED | ATTESTED, 0, attested);
      const attestation = cbor(
        new Map<string, Value>([
          ['fmt', 'none'],
          ['attStmt', new Map()],
          ['authData', authData],
        ]),
      );
      return {
        id,
        rawId: id,
        type: 'public-key',
        clientExtensionResults: {},
        response: {
          clientDataJSON: clientData('webauthn.create', challenge).toString('base64url'),
          attestationObject: attestation.toString('base64url'),
          transports: ['internal'],
        },
      };
    },
    authenticate: ({ challenge }, { counter = ++uses, flags = PRESENT | VERIFIED } = {}) => {
      const data = clientData('webauthn.get', challenge);
      const authData = authenticatorData(flags, counter);
      const signed = Buffer.concat([authData, createHash('sha256').update(data).digest()]);
      return {
        id,
        rawId: id,
        type: 'public-key',
        clientExtensionResults: {},
        response: {
          clientDataJSON: data.toString('base64url'),
          authenticatorData: authData.toString('base64url'),
          signature: sign('sha256', signed, privateKey).toString('base64url'),
          userHandle: null,
        },
      };
    },
  };
}

type Value = number | string | Buffer | Map<number | string, Value>;

/** RFC 8949, as far as attestation objects need it. */
function cbor(value: Value): Buffer {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === 'string')
    return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value]);
  return Buffer.concat([
    head(5, value.size),
    ...[...value].flatMap(([name, entry]) => [cbor(name), cbor(entry)]),
  ]);
}

function head(major: number, argument: number): Buffer {
  if (argument < 24) return Buffer.from([(major << 5) | argument]);
  if (argument < 256) return Buffer.from([(major << 5) | 24, argument]);
  return Buffer.from([(major << 5) | 25, argument >> 8, argument & 255]);
}
