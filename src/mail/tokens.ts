import { createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { base32, fromBase32 } from '../core/base32.ts';
import { mac, type Seal } from '../core/seal.ts';
import {
  PACKED_ID_LENGTH,
  packId,
  packSentMail,
  type SentMail,
  unpackId,
  unpackSentMail,
} from './sent-mail.ts';

/** All functions throw when an id is not `<kind>_<epoch ms>_<12 base-36 characters>`. */
export interface AccountTokens {
  /** Local part of the envelope sender, `b-<token>`: 50 characters, case-insensitive (VERP). */
  returnPath(id: string): string;
  /** Local part for complaint feedback, `fbl-<token>` (RFC 9477). */
  feedback(id: string): string;
  /** Local part of the mailto form of List-Unsubscribe, `unsubscribe-<token>`. */
  unsubscribe(id: string): string;
  /** Value of X-Postrider-Id. */
  signedId(id: string): string;
  /** Last part of an unsubscribe page's URL: it contains all that an opt-out needs after the message was purged. */
  unsubscribeUrl(mail: SentMail): string;
  /** Last part of a report-abuse page's URL. */
  reportUrl(mail: SentMail): string;
  /** Last part of the URL of the page that shows the message. */
  viewUrl(mail: SentMail): string;
  /** Last part of an open-tracking pixel's URL, without file extension. */
  openUrl(id: string): string;
  /** Last part of the URL that confirms a sign-up. */
  signUp(signUp: SignUp): string;
  /** Last part of the URL of a part of a received mail. */
  file(file: InboundFileLink): string;
  /** Signs the tokens of tracked links; the delivery worker creates them. */
  click: ClickSigner;
}

export interface ClickSigner {
  key: KeyObject;
  /** The bytes at the beginning of the tokens: those of `linkPrefix`. */
  head: Uint8Array;
}

/** A sign-up that waits for its confirmation: it is stored in the token only. */
export interface SignUp {
  groupId: string;
  email: string;
  firstName: string;
  lastName: string;
  /** When the form was sent, epoch ms. */
  at: number;
  /** Of the page with the form; null in tokens of version 0.2.0. */
  language: string | null;
}

/** A part of a received mail whose address needs no key. */
export interface InboundFileLink {
  inboundId: string;
  /** The position of an attachment, from 0, or the source. */
  part: number | 'raw';
  /** Until when the link is valid, epoch ms. */
  until: number;
}

/** The message of a token, read without a database: the account must be compared with that of the message. */
export interface TrackedMessage {
  id: string;
  /** Whether the token was created for a message of this account. */
  isOf(accountId: string): boolean;
}

export interface Click extends TrackedMessage {
  url: string;
  /** The link was created for the host. */
  madeForHost: boolean;
}

/** What a key may sign, and the keys of accounts that came from another installation. */
export interface TokenAccounts {
  /** The imported key of the account with this tag (10 hexadecimal digits); null: it has none. */
  importedKey(tag: string): ImportedTokenKey | null;
  /** The account of a message; null: the message is not known. */
  accountOf(messageId: string): string | null;
}

export interface ImportedTokenKey {
  accountId: string;
  /** Keys of 32 bytes, one after another; the first one signs, and all of them verify. */
  key: Buffer;
}

/** Purposes of the tokens in URLs: `/u/`, `/r/`, `/c/`, `/o/`, `/k/`, `/v/` and `/f/`. */
const URL_PURPOSES = ['unsubscribe', 'report', 'click', 'open', 'sign-up', 'view', 'file'] as const;
type UrlPurpose = (typeof URL_PURPOSES)[number];

/** Purposes of the tokens in addresses, and what precedes the token. */
const ADDRESS_PURPOSES = {
  'return-path': 'b-',
  feedback: 'fbl-',
  'unsubscribe-address': 'unsubscribe-',
  'message-id': '',
} as const;
type AddressPurpose = keyof typeof ADDRESS_PURPOSES;

/** The byte between message id and URL of a click token, followed by a hash of the host. */
const WITH_HOST = 1;
const HOST_TAG_LENGTH = 8;

/** Identifies an account in 40 bits: with the byte before it, 8 characters of base64url; alone, 8 of base32. */
const TAG_LENGTH = 5;
/** The first byte of a URL token. */
const WITH_TAG = 0xa2;
const HEAD_LENGTH = 1 + TAG_LENGTH;
/** With the bytes of tag and id 240 bits, which base32 encodes without spare bits: each token has one spelling. */
const ADDRESS_MAC_LENGTH = 10;
const URL_MAC_LENGTH = 16;
const ADDRESS_TOKEN_LENGTH = 48;
/** Longer than the token of any tracked URL. */
const MAX_URL_TOKEN_LENGTH = 16_384;
/** Accounts whose keys are in memory; eleven keys each. */
const MAX_CACHED_ACCOUNTS = 2000;
const MAC_KEY_LENGTH = 32;
/** Of an account, from which the keys of the purposes are derived. */
export const ACCOUNT_KEY_LENGTH = 32;

const NO_ACCOUNTS: TokenAccounts = { importedKey: () => null, accountOf: () => null };

/** The tag of an account in its tokens. Two accounts of one installation never have the same. */
export function accountTag(accountId: string): Buffer {
  return hash('sha256', `postrider account ${accountId}`, 'buffer').subarray(0, TAG_LENGTH);
}

/** The first 8 characters of the account's tokens in URLs: a load balancer can route links by them. */
export function linkPrefix(accountId: string): string {
  return headOf(accountTag(accountId)).toString('base64url');
}

/**
 * The keys from which an installation derives the keys of an account's tokens, if the account has no imported key: one of
 * 32 bytes for each master key, one after another, the newest first.
 */
export function ownTokenKey(seal: Pick<Seal, 'deriveEach'>, accountId: string): Buffer {
  return Buffer.concat(seal.deriveEach(tokenPurpose(accountTag(accountId).toString('hex'))));
}

function tokenPurpose(tag: string): string {
  return `token/account/${tag}`;
}

/** The keys of one account by purpose. */
type Keys = Record<UrlPurpose | AddressPurpose, KeyObject>;

/** The keys that sign, then those that only verify, because the master key was replaced. */
type AccountKeys = readonly [Keys, ...Keys[]];

/** What creates the tokens of an account; `keys` are those of `tokens`. `tag`: in hexadecimal digits. */
interface AccountSigner {
  readonly tag: string;
  keys: Keys | null;
  tokens: AccountTokens | null;
}

/** A verified token. `isOf`: whether its key signs for this account. */
interface Verified {
  payload: Buffer;
  isOf(accountId: string): boolean;
}

/**
 * Signed tokens that identify the message of a bounce, a complaint, an unsubscribe or a click, and cannot be forged.
 * Each account has its own key, and each purpose a key derived from it: a token of one purpose is invalid for all
 * others, and the key of an account that moves to another installation signs nothing of other accounts. A token begins
 * with the tag of its account, by which its key is found. Reading a token never throws, and compares the MAC in
 * constant time. Derives the keys from `seal`; the tokens of one data directory are invalid in another, unless an account
 * moved.
 */
export function createTokens(
  seal: Pick<Seal, 'deriveEach' | 'newest'>,
  accounts: TokenAccounts = NO_ACCOUNTS,
) {
  const signers = new LRUCache<string, AccountSigner>({ max: MAX_CACHED_ACCOUNTS });
  const cache = new LRUCache<string, AccountKeys>({ max: MAX_CACHED_ACCOUNTS });

  function cached(name: string, accountKeys: () => Buffer[]): AccountKeys {
    const known = cache.get(name);
    if (known !== undefined) return known;
    const [first, ...former] = accountKeys();
    if (first === undefined) throw new Error(`There is no key for tokens of ${name}`);
    const keys: AccountKeys = [derivedKeys(first), ...former.map(derivedKeys)];
    cache.set(name, keys);
    return keys;
  }
  // A new master key gives new keys.
  const ownKeys = (tag: string) =>
    cached(`${seal.newest()} ${tag}`, () => seal.deriveEach(tokenPurpose(tag)));
  const importedKeys = ({ accountId, key }: ImportedTokenKey) =>
    cached(`${accountId} ${key.toString('hex')}`, () => split(key));

  /** Verifies with the key of this installation, then with the one that was imported with the account. */
  function verify(
    bytes: Buffer,
    tag: string,
    purpose: UrlPurpose | AddressPurpose,
    macLength: number,
  ): Verified | null {
    const signedBy = (accountKeys: AccountKeys) => {
      for (const keys of accountKeys) {
        const payload = verifiedPayload(bytes, keys[purpose], macLength);
        if (payload !== null) return payload;
      }
      return null;
    };
    const signed = signedBy(ownKeys(tag));
    if (signed !== null) return { payload: signed, isOf: (id) => accountTag(id).toString('hex') === tag };
    const importedKey = accounts.importedKey(tag);
    const payload = importedKey && signedBy(importedKeys(importedKey));
    return payload && { payload, isOf: (id) => id === importedKey.accountId };
  }

  /** Whether the message is one of the token's account; true when the message is not known. */
  function mayName(token: Pick<Verified, 'isOf'>, messageId: string): boolean {
    const owner = accounts.accountOf(messageId);
    return owner === null || token.isOf(owner);
  }

  const readAddress = (purpose: AddressPurpose) => (token: string) => {
    const prefix = ADDRESS_PURPOSES[purpose];
    if (token.slice(0, prefix.length).toLowerCase() !== prefix) return null;
    if (token.length - prefix.length !== ADDRESS_TOKEN_LENGTH) return null;
    const bytes = fromBase32(token.slice(prefix.length));
    if (bytes === null) return null;
    const verified = verify(bytes, tagIn(bytes, 0), purpose, ADDRESS_MAC_LENGTH);
    const id = verified && unpackId(verified.payload.subarray(TAG_LENGTH));
    return id !== null && verified !== null && mayName(verified, id) ? id : null;
  };

  function readUrl(purpose: UrlPurpose, token: string): Verified | null {
    if (token.length > MAX_URL_TOKEN_LENGTH) return null;
    const bytes = Buffer.from(token, 'base64url');
    // Node ignores invalid characters and spare bits: only the canonical spelling is valid.
    if (bytes.toString('base64url') !== token) return null;
    if (bytes[0] !== WITH_TAG || bytes.length < HEAD_LENGTH + URL_MAC_LENGTH) return null;
    const verified = verify(bytes, tagIn(bytes, 1), purpose, URL_MAC_LENGTH);
    return verified && { ...verified, payload: verified.payload.subarray(HEAD_LENGTH) };
  }

  const readMail = (purpose: UrlPurpose) => (token: string) => {
    const verified = readUrl(purpose, token);
    const mail = verified && unpackSentMail(verified.payload);
    if (mail === null || verified === null || !verified.isOf(mail.accountId)) return null;
    return mayName({ isOf: (id) => id === mail.accountId }, mail.messageId) ? mail : null;
  };

  return {
    /** Creates the tokens of an account's messages. */
    of: (accountId: string): AccountTokens => {
      let signer = signers.get(accountId);
      if (signer === undefined) {
        const tag = accountTag(accountId);
        signer = { tag: tag.toString('hex'), keys: null, tokens: null };
        signers.set(accountId, signer);
      }
      // Looked up each time: the account may have been imported, or deleted and created again, meanwhile.
      const importedKey = accounts.importedKey(signer.tag);
      const [keys] = importedKey?.accountId === accountId ? importedKeys(importedKey) : ownKeys(signer.tag);
      if (signer.tokens === null || signer.keys !== keys) {
        signer.keys = keys;
        signer.tokens = accountTokens(Buffer.from(signer.tag, 'hex'), keys);
      }
      return signer.tokens;
    },
    /** Reads the local part of the envelope sender; the id of the message, or null. */
    returnPath: readAddress('return-path'),
    feedback: readAddress('feedback'),
    unsubscribe: readAddress('unsubscribe-address'),
    /** Reads a value of X-Postrider-Id. */
    signedId: readAddress('message-id'),
    unsubscribeUrl: readMail('unsubscribe'),
    reportUrl: readMail('report'),
    viewUrl: readMail('view'),
    openUrl: (token: string): TrackedMessage | null => {
      const verified = readUrl('open', token);
      const id = verified && unpackId(verified.payload);
      return id !== null && verified !== null ? { id, isOf: verified.isOf } : null;
    },
    signUp: (token: string): (SignUp & Pick<TrackedMessage, 'isOf'>) | null => {
      const verified = readUrl('sign-up', token);
      if (verified === null) return null;
      // Sound: the token is signed, and only `signUp` above creates tokens of this purpose.
      const parts = JSON.parse(verified.payload.toString()) as [
        string,
        string,
        string,
        string,
        number,
        string?,
      ];
      const [groupId, email, firstName, lastName, at, language = null] = parts;
      return { groupId, email, firstName, lastName, at, language, isOf: verified.isOf };
    },
    file: (token: string): (InboundFileLink & Pick<TrackedMessage, 'isOf'>) | null => {
      const verified = readUrl('file', token);
      if (verified === null) return null;
      // Sound: the token is signed, and only `file` of an account creates tokens of this purpose.
      const [inboundId, part, until] = JSON.parse(verified.payload.toString()) as [
        string,
        number | 'raw',
        number,
      ];
      return { inboundId, part, until, isOf: verified.isOf };
    },
    /** Reads a token of `clickTokens` from a request to `host`. */
    click: (token: string, host: string): Click | null => {
      const verified = readUrl('click', token);
      const id = verified && unpackId(verified.payload.subarray(0, PACKED_ID_LENGTH));
      if (id === null || verified === null) return null;
      const { payload, isOf } = verified;
      const rest = payload.subarray(PACKED_ID_LENGTH);
      if (rest[0] !== WITH_HOST) return null;
      const madeForHost = rest.subarray(1, 1 + HOST_TAG_LENGTH).equals(hostTag(host));
      return { id, isOf, url: rest.subarray(1 + HOST_TAG_LENGTH).toString(), madeForHost };
    },
  };
}

export type Tokens = ReturnType<typeof createTokens>;

function accountTokens(tag: Buffer, keys: Keys): AccountTokens {
  const head = headOf(tag);
  const address = (purpose: AddressPurpose) => (id: string) =>
    ADDRESS_PURPOSES[purpose] +
    base32(signed(keys[purpose], Buffer.concat([tag, packId(id)]), ADDRESS_MAC_LENGTH));
  const url = (purpose: UrlPurpose, payload: Buffer) => urlToken(keys[purpose], head, payload);
  return {
    returnPath: address('return-path'),
    feedback: address('feedback'),
    unsubscribe: address('unsubscribe-address'),
    signedId: address('message-id'),
    unsubscribeUrl: (mail) => url('unsubscribe', packSentMail(mail)),
    reportUrl: (mail) => url('report', packSentMail(mail)),
    viewUrl: (mail) => url('view', packSentMail(mail)),
    openUrl: (id) => url('open', packId(id)),
    signUp: ({ groupId, email, firstName, lastName, at, language }) => {
      const parts = [groupId, email, firstName, lastName, at, ...(language === null ? [] : [language])];
      return url('sign-up', Buffer.from(JSON.stringify(parts)));
    },
    file: ({ inboundId, part, until }) => url('file', Buffer.from(JSON.stringify([inboundId, part, until]))),
    click: { key: keys.click, head },
  };
}

/**
 * Returns a function that creates the last part of a message's tracked link at `host` from the URL of the link. Throws
 * when the id cannot be packed into a token.
 */
export function clickTokens({ key, head }: ClickSigner, id: string, host: string): (url: string) => string {
  const start = Buffer.concat([packId(id), Buffer.from([WITH_HOST]), hostTag(host)]);
  return (url) => urlToken(key, head, Buffer.concat([start, Buffer.from(url)]));
}

/** Not keyed: it is part of the signed payload. */
function hostTag(host: string): Buffer {
  return hash('sha256', host, 'buffer').subarray(0, HOST_TAG_LENGTH);
}

function headOf(tag: Buffer): Buffer {
  return Buffer.concat([Buffer.from([WITH_TAG]), tag]);
}

function tagIn(bytes: Buffer, at: number): string {
  return bytes.toString('hex', at, at + TAG_LENGTH);
}

function addressPurposes(): AddressPurpose[] {
  return Object.keys(ADDRESS_PURPOSES) as AddressPurpose[]; // the keys of a constant
}

/** One key for each purpose. */
function keysOf<Purpose extends string>(
  keyOf: (purpose: Purpose) => Buffer,
  purposes: readonly Purpose[],
): Record<Purpose, KeyObject> {
  const entries = purposes.map((purpose) => [purpose, createSecretKey(keyOf(purpose))]);
  return Object.fromEntries(entries) as Record<Purpose, KeyObject>; // the keys are `purposes`
}

function derivedKeys(accountKey: Buffer): Keys {
  const keyFor = (purpose: string) => mac(accountKey, purpose, MAC_KEY_LENGTH);
  return {
    ...keysOf((purpose) => keyFor(`url/${purpose}`), URL_PURPOSES),
    ...keysOf(keyFor, addressPurposes()),
  };
}

/** Keys of 32 bytes. */
function split(keys: Buffer): Buffer[] {
  const count = Math.floor(keys.length / ACCOUNT_KEY_LENGTH);
  return Array.from({ length: count }, (_, index) =>
    keys.subarray(index * ACCOUNT_KEY_LENGTH, (index + 1) * ACCOUNT_KEY_LENGTH),
  );
}

/** The payload, followed by its MAC. */
function signed(key: KeyObject, payload: Buffer, macLength: number): Buffer {
  return Buffer.concat([payload, mac(key, payload, macLength)]);
}

function urlToken(key: KeyObject, head: Uint8Array, payload: Buffer): string {
  return signed(key, Buffer.concat([head, payload]), URL_MAC_LENGTH).toString('base64url');
}

/** The bytes before the MAC; null when the MAC is wrong or incomplete. */
function verifiedPayload(bytes: Buffer, key: KeyObject, macLength: number): Buffer | null {
  if (bytes.length < macLength) return null;
  const payload = bytes.subarray(0, bytes.length - macLength);
  return timingSafeEqual(bytes.subarray(payload.length), mac(key, payload, macLength)) ? payload : null;
}
