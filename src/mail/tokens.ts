import { createHash, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { mac, type Seal } from '../core/seal.ts';
import { PACKED_ID_LENGTH, packId, unpackId } from './packed-id.ts';
import { packSentMail, type SentMail, unpackSentMail } from './sent-mail.ts';

/**
 * Signed tokens that identify the message of a bounce, a complaint, an unsubscribe or a click, and cannot be forged. Each
 * purpose has a separate MAC key, so that a token of one purpose is invalid for all others. Reading a token never throws,
 * and compares the MAC in constant time.
 */
export interface IdToken {
  /** Throws on an id that is not `<kind>_<epoch ms>_<12 base-36 characters>`. */
  make(id: string): string;
  /** The id, or null when `make` did not create the token. */
  read(token: string): string | null;
}

/** A token that contains all that it identifies, so that it works after the message was purged. */
export interface SentMailToken {
  /** Throws when an id cannot be packed into a token. */
  make(mail: SentMail): string;
  /** Null when `make` did not create the token. */
  read(token: string): SentMail | null;
}

/** Purposes of the tokens in URLs: `/u/`, `/r/`, `/c/` and `/o/`. */
const URL_PURPOSES = ['unsubscribe', 'report', 'click', 'open'] as const;

export type UrlPurpose = (typeof URL_PURPOSES)[number];

export interface Tokens {
  /** Local part of the envelope sender, `b-<token>`: 42 characters, case-insensitive (VERP). */
  returnPath: IdToken;
  /** Local part for complaint feedback, `fbl-<token>` (RFC 9477). */
  feedback: IdToken;
  /** Local part of the mailto form of List-Unsubscribe, `unsubscribe-<token>`. */
  unsubscribe: IdToken;
  /** Value of X-Postrider-Id. */
  signedId: IdToken;
  /** Last part of an unsubscribe page's URL. */
  unsubscribeUrl: SentMailToken;
  /** Last part of a report-abuse page's URL. */
  reportUrl: SentMailToken;
  /** Last part of an open-tracking pixel's URL, without file extension. */
  openUrl: IdToken;
  /** The key that signs the tokens of tracked links; the delivery worker creates them. */
  clickKey: KeyObject;
  /** Reads a token of `clickTokens` from a request to `host`. */
  readClick(token: string, host: string): Click | null;
  /** Signs any octets as a base64url token. */
  makeUrlToken(purpose: UrlPurpose, payload: Buffer): string;
  readUrlToken(purpose: UrlPurpose, token: string): Buffer | null;
}

export interface Click {
  id: string;
  url: string;
  /** The link was created for the host; also true for links of older versions, which did not record the host. */
  madeForHost: boolean;
}

/**
 * The octet between message id and URL of a click token, followed by a hash of the host. No URL begins with it, which
 * distinguishes older tokens, with the URL directly after the message id.
 */
const WITH_HOST = 1;
const HOST_TAG_LENGTH = 8;

/** With the 15 octets of an id 200 bits, which base32 encodes without spare bits: each token has one spelling. */
const ADDRESS_MAC_LENGTH = 10;
const URL_MAC_LENGTH = 16;
const ADDRESS_TOKEN_LENGTH = 40;
/** Longer than the token of any tracked URL. */
const MAX_URL_TOKEN_LENGTH = 16_384;

/** Derives the keys from `seal`; the tokens of one data directory are invalid in another. */
export function createTokens(seal: Seal): Tokens {
  const addressToken = (purpose: string, prefix: string): IdToken => {
    const key = seal.derive(`token/${purpose}`);
    return {
      make: (id) => {
        const packed = packId(id);
        return prefix + base32(Buffer.concat([packed, mac(key, packed, ADDRESS_MAC_LENGTH)]));
      },
      read: (token) => {
        if (token.length !== prefix.length + ADDRESS_TOKEN_LENGTH) return null;
        if (token.slice(0, prefix.length).toLowerCase() !== prefix) return null;
        const octets = fromBase32(token.slice(prefix.length));
        const packed = octets && verifiedPayload(octets, key, ADDRESS_MAC_LENGTH);
        return packed && unpackId(packed);
      },
    };
  };

  const urlKeys = new Map(URL_PURPOSES.map((purpose) => [purpose, seal.derive(`token/url/${purpose}`)]));
  const urlKey = (purpose: UrlPurpose): Buffer => {
    const key = urlKeys.get(purpose);
    if (!key) throw new Error(`no token key for purpose ${purpose}`);
    return key;
  };
  const makeUrlToken: Tokens['makeUrlToken'] = (purpose, payload) => urlToken(urlKey(purpose), payload);
  const readUrlToken: Tokens['readUrlToken'] = (purpose, token) => {
    if (token.length > MAX_URL_TOKEN_LENGTH) return null;
    const octets = Buffer.from(token, 'base64url');
    // Node ignores invalid characters and spare bits: only the canonical spelling is valid.
    if (octets.toString('base64url') !== token) return null;
    return verifiedPayload(octets, urlKey(purpose), URL_MAC_LENGTH);
  };
  const urlId = (purpose: UrlPurpose): IdToken => ({
    make: (id) => makeUrlToken(purpose, packId(id)),
    read: (token) => {
      const packed = readUrlToken(purpose, token);
      return packed && unpackId(packed);
    },
  });
  const sentMailToken = (purpose: UrlPurpose): SentMailToken => ({
    make: (mail) => makeUrlToken(purpose, packSentMail(mail)),
    read: (token) => {
      const packed = readUrlToken(purpose, token);
      return packed && unpackSentMail(packed);
    },
  });

  return {
    returnPath: addressToken('return-path', 'b-'),
    feedback: addressToken('feedback', 'fbl-'),
    unsubscribe: addressToken('unsubscribe-address', 'unsubscribe-'),
    signedId: addressToken('message-id', ''),
    makeUrlToken,
    readUrlToken,
    unsubscribeUrl: sentMailToken('unsubscribe'),
    reportUrl: sentMailToken('report'),
    openUrl: urlId('open'),
    clickKey: createSecretKey(urlKey('click')),
    readClick: (token, host) => {
      const payload = readUrlToken('click', token);
      const id = payload && unpackId(payload.subarray(0, PACKED_ID_LENGTH));
      if (!id) return null;
      const rest = payload.subarray(PACKED_ID_LENGTH);
      if (rest[0] !== WITH_HOST) return { id, url: rest.toString(), madeForHost: true };
      const madeForHost = rest.subarray(1, 1 + HOST_TAG_LENGTH).equals(hostTag(host));
      return { id, url: rest.subarray(1 + HOST_TAG_LENGTH).toString(), madeForHost };
    },
  };
}

/**
 * Returns a function that creates the last part of a message's tracked link at `host` from the URL of the link. Throws
 * when the id cannot be packed into a token.
 */
export function clickTokens(key: KeyObject, id: string, host: string): (url: string) => string {
  const head = Buffer.concat([packId(id), Buffer.from([WITH_HOST]), hostTag(host)]);
  return (url) => urlToken(key, Buffer.concat([head, Buffer.from(url)]));
}

/** Not keyed: it is part of the signed payload. */
function hostTag(host: string): Buffer {
  return createHash('sha256').update(host).digest().subarray(0, HOST_TAG_LENGTH);
}

function urlToken(key: Buffer | KeyObject, payload: Buffer): string {
  return Buffer.concat([payload, mac(key, payload, URL_MAC_LENGTH)]).toString('base64url');
}

/** The octets before the MAC; null when the MAC is wrong or incomplete. */
function verifiedPayload(octets: Buffer, key: Buffer, macLength: number): Buffer | null {
  if (octets.length < macLength) return null;
  const payload = octets.subarray(0, octets.length - macLength);
  return timingSafeEqual(octets.subarray(payload.length), mac(key, payload, macLength)) ? payload : null;
}

/** RFC 4648 §6, in lower case and without padding; the input is always a multiple of five octets. */
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';
const BASE32_VALUES: ReadonlyMap<string, number> = new Map(
  Array.from(BASE32).flatMap((char, value) => [
    [char, value],
    [char.toUpperCase(), value],
  ]),
);

function base32(octets: Buffer): string {
  let text = '';
  let bits = 0;
  let held = 0;
  for (const octet of octets) {
    held = ((held << 8) | octet) & 0xfff;
    bits += 8;
    for (; bits >= 5; bits -= 5) text += BASE32[(held >> (bits - 5)) & 31];
  }
  return text;
}

/** Decodes base32, case-insensitive; null when a character is not in the alphabet. */
function fromBase32(text: string): Buffer | null {
  const octets = Buffer.alloc((text.length * 5) / 8);
  let at = 0;
  let bits = 0;
  let held = 0;
  for (const char of text) {
    const value = BASE32_VALUES.get(char);
    if (value === undefined) return null;
    held = ((held << 5) | value) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    octets[at++] = (held >> bits) & 255;
  }
  return octets;
}
