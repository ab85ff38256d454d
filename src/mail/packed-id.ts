/*
 * Packs public ids (core/ids.ts) into 15 bytes, for short tokens: kind (1), epoch ms (6), the 12 base-36 characters of
 * the suffix as a number (8).
 */

const ID_PATTERN = /^([a-z]+)_(0|[1-9][0-9]{0,14})_([0-9a-z]{12})$/;
export const PACKED_ID_LENGTH = 15;
const SUFFIX_LENGTH = 12;
const MAX_EPOCH = 2 ** 48 - 1;

/** The index of a kind is its number in all existing tokens: append only. */
const KINDS = ['msg', 'job', 'evt', 'campaign', 'domain', 'sgroup', 'whd'];

/** Throws when the id is not of a known kind. */
export function packId(id: string): Buffer {
  const [, kind = '', epoch = '', suffix = ''] = ID_PATTERN.exec(id) ?? [];
  const number = KINDS.indexOf(kind);
  if (number === -1 || Number(epoch) > MAX_EPOCH)
    throw new Error(`${JSON.stringify(id)} cannot be packed into a token`);
  const packed = Buffer.alloc(PACKED_ID_LENGTH);
  packed.writeUInt8(number, 0);
  packed.writeUIntBE(Number(epoch), 1, 6);
  packed.writeBigUInt64BE(fromBase36(suffix), 7);
  return packed;
}

/** Null when the bytes are not a packed id. */
export function unpackId(packed: Buffer): string | null {
  if (packed.length !== PACKED_ID_LENGTH) return null;
  const kind = KINDS[packed.readUInt8(0)];
  const suffix = packed.readBigUInt64BE(7).toString(36).padStart(SUFFIX_LENGTH, '0');
  return kind === undefined || suffix.length > SUFFIX_LENGTH
    ? null
    : `${kind}_${packed.readUIntBE(1, 6)}_${suffix}`;
}

/** Parses two halves of six characters, each small enough for an exact number. */
function fromBase36(suffix: string): bigint {
  const half = SUFFIX_LENGTH / 2;
  return (
    BigInt(Number.parseInt(suffix.slice(0, half), 36)) * BigInt(36 ** half) +
    BigInt(Number.parseInt(suffix.slice(half), 36))
  );
}
