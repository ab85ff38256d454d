import { createHash, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { mac, type Seal } from '../core/seal.ts';
import { PACKED_ID, packId, unpackId } from './packed-id.ts';
import { packSentMail, type SentMail, unpackSentMail } from './sent-mail.ts';

/**
 * Signed tokens: how a bounce, a complaint, an unsubscribe or a click finds its message without anyone being able
 * to make one up. Each purpose has a MAC key of its own, so a token of one never passes for another. Reading a
 * token never throws and tells good from bad in constant time; what it stands for is decided elsewhere.
 */
export interface IdToken {
  /** Throws on an id that is not `<kind>_<epoch ms>_<12 base-36 characters>`. */
  make(id: string): string;
  /** The id, or null for anything that `make` did not make. */
  read(token: string): string | null;
}

/** A token that says by itself what it is about, so that it works when nothing else is left of the message. */
export interface SentMailToken {
  /** Throws when an id in it cannot stand in a token. */
  make(mail: SentMail): string;
  /** Null for anything that `make` did not make. */
  read(token: string): SentMail | null;
}

/** Purposes of the tokens that stand in URLs: `/u/`, `/r/`, `/c/` and `/o/`. */
const URL_PURPOSES = ['unsubscribe', 'report', 'click', 'open'] as const;

export type UrlPurpose = (typeof URL_PURPOSES)[number];

export interface Tokens {
  /** Local part of the envelope sender, `b-<token>`: 42 characters, read in any letter case (VERP). */
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
  /** Last part of an open-tracking pixel's URL, without its file ending. */
  openUrl: IdToken;
  /** What the tokens of tracked links are signed with: it goes with a message to the worker that makes them. */
  clickKey: KeyObject;
  /** Reads what `clickTokens` made, for a visitor who came to `host`. */
  readClick(token: string, host: string): Click | null;
  /** Any octets as a base64url token, where an id is not what is wanted. */
  makeUrlToken(purpose: UrlPurpose, payload: Buffer): string;
  readUrlToken(purpose: UrlPurpose, token: string): Buffer | null;
}

export interface Click {
  id: string;
  url: string;
  /** The link was made to name the host; also true where an older program made it, which did not record the host. */
  madeForHost: boolean;
}

/**
 * Stands between message and address in a click token, with a hash of the host behind it. An address never begins
 * with this octet, so that older tokens, which have the address there, are told apart.
 */
const WITH_HOST = 1;
const HOST_TAG = 8;

/** With an id's 15 octets 200 bits, which base32 holds without a bit to spare: one token, one spelling. */
const ADDRESS_MAC = 10;
const URL_MAC = 16;
const ADDRESS_TOKEN_LENGTH = 40;
/** Longer than any URL we put into a link. */
const MAX_URL_TOKEN = 16_384;

/** The keys come from `seal`; the tokens of one data directory mean nothing to another. */
export function createTokens(seal: Seal): Tokens {
  const addressToken = (purpose: string, prefix: string): IdToken => {
    const key = seal.derive(`token/${purpose}`);
    return {
      make: (id) => {
        const packed = packId(id);
        return prefix + base32(Buffer.concat([packed, mac(key, packed, ADDRESS_MAC)]));
      },
      read: (token) => {
        if (token.length !== prefix.length + ADDRESS_TOKEN_LENGTH) return null;
        if (token.slice(0, prefix.length).toLowerCase() !== prefix) return null;
        const octets = fromBase32(token.slice(prefix.length));
        const packed = octets && authentic(octets, key, ADDRESS_MAC);
        return packed && unpackId(packed);
      },
    };
  };

  const urlKeys = new Map(URL_PURPOSES.map((purpose) => [purpose, seal.derive(`token/url/${purpose}`)]));
  const urlKey = (purpose: UrlPurpose): Buffer => {
    const key = urlKeys.get(purpose);
    if (!key) throw new Error(`no tokens are made for ${purpose}`);
    return key;
  };
  const makeUrlToken: Tokens['makeUrlToken'] = (purpose, payload) => urlToken(urlKey(purpose), payload);
  const readUrlToken: Tokens['readUrlToken'] = (purpose, token) => {
    if (token.length > MAX_URL_TOKEN) return null;
    const octets = Buffer.from(token, 'base64url');
    // Node reads over what is no base64url, and spare bits may hold anything: only the one spelling counts.
    if (octets.toString('base64url') !== token) return null;
    return authentic(octets, urlKey(purpose), URL_MAC);
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
      const id = payload && unpackId(payload.subarray(0, PACKED_ID));
      if (!id) return null;
      const rest = payload.subarray(PACKED_ID);
      if (rest[0] !== WITH_HOST) return { id, url: rest.toString(), madeForHost: true };
      const madeForHost = rest.subarray(1, 1 + HOST_TAG).equals(hostTag(host));
      return { id, url: rest.subarray(1 + HOST_TAG).toString(), madeForHost };
    },
  };
}

/**
 * Makes the last parts of a message's tracked links at `host`, each of the address that the link had. Throws when
 * the id cannot stand in a token.
 */
export function clickTokens(key: KeyObject, id: string, host: string): (url: string) => string {
  const head = Buffer.concat([packId(id), Buffer.from([WITH_HOST]), hostTag(host)]);
  return (url) => urlToken(key, Buffer.concat([head, Buffer.from(url)]));
}

/** Needs no key: it stands within what is signed. */
function hostTag(host: string): Buffer {
  return createHash('sha256').update(host).digest().subarray(0, HOST_TAG);
}

function urlToken(key: Buffer | KeyObject, payload: Buffer): string {
  return Buffer.concat([payload, mac(key, payload, URL_MAC)]).toString('base64url');
}

/** What stands before a right MAC; null when it is wrong or too short to be one. */
function authentic(octets: Buffer, key: Buffer, macLength: number): Buffer | null {
  if (octets.length < macLength) return null;
  const payload = octets.subarray(0, octets.length - macLength);
  return timingSafeEqual(octets.subarray(payload.length), mac(key, payload, macLength)) ? payload : null;
}

/** RFC 4648 §6, in lower case and without padding; its octets always come in groups of five here. */
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

/** In either letter case; null when a character is none of the alphabet. */
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
