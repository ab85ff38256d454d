import type { Clock } from './clock.ts';
import { type Random, randomText } from './random.ts';

const BASE36 = '0123456789abcdefghijklmnopqrstuvwxyz';
const BASE62 = `${BASE36}ABCDEFGHIJKLMNOPQRSTUVWXYZ`;

export type IdKind =
  | 'domain'
  | 'dgroup'
  | 'webhook'
  | 'sgroup'
  | 'segment'
  | 'campaign'
  | 'seq'
  | 'template'
  | 'ctemplate'
  | 'msg'
  | 'job'
  | 'import'
  | 'hygiene'
  | 'evt'
  | 'whd'
  | 'key'
  | 'alt'
  | 'person'
  | 'session'
  | 'view'
  | 'media'
  | 'partial'
  | 'limit'
  | 'route'
  | 'inb';

/**
 * Creates all public ids. Form: `<kind>_<epoch ms>_<12 lower-case base-36 characters>`; ids of accounts have no time.
 * Ids of a kind sort by time of creation.
 *
 * Stateless: the time comes from `clock`, the rest from `random`, and uniqueness is not checked; twelve base-36
 * characters are 62 bits.
 */
export function createIds(clock: Clock, random: Random) {
  const suffix = () => randomText(random, BASE36, 12);
  return {
    make: (kind: IdKind): string => `${kind}_${clock.now()}_${suffix()}`,
    account: (): string => `acct_${suffix()}`,
    /** `pr_` and 43 base-62 characters (256 bits). A secret: shown once. */
    apiKey: (): string => `pr_${randomText(random, BASE62, 43)}`,
    /** 43 base-62 characters (256 bits): the token of a link or a session. */
    token: (): string => randomText(random, BASE62, 43),
    /** A short lower-case label, for example the end of a DKIM selector. */
    label: (length: number): string => randomText(random, BASE36, length),
    /** UUID version 7 (RFC 9562 §5.7). */
    uuid: (): string => {
      const bytes = random.bytes(16);
      bytes.writeUIntBE(clock.now(), 0, 6);
      bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f);
      bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
      const hex = bytes.toString('hex');
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
    },
  };
}

export type Ids = ReturnType<typeof createIds>;
