/**
 * Public ids (core/ids.ts) in 15 octets, for tokens that must be short: kind (1), epoch ms (6), the suffix's 12
 * base-36 characters as a number (8).
 */
const SHAPE = /^([a-z]+)_(0|[1-9][0-9]{0,14})_([0-9a-z]{12})$/;
export const PACKED_ID = 15;
const SUFFIX = 12;
const MAX_EPOCH = 2 ** 48 - 1;

/** A kind's place is its number in every token ever made: only ever append. */
const KINDS = ['msg', 'job', 'evt', 'campaign', 'domain', 'sgroup', 'whd'];

/** Throws when it is not such an id. */
export function packId(id: string): Buffer {
  const [, kind = '', epoch = '', suffix = ''] = SHAPE.exec(id) ?? [];
  const number = KINDS.indexOf(kind);
  if (number === -1 || Number(epoch) > MAX_EPOCH)
    throw new Error(`${JSON.stringify(id)} cannot stand in a token`);
  const packed = Buffer.alloc(PACKED_ID);
  packed.writeUInt8(number, 0);
  packed.writeUIntBE(Number(epoch), 1, 6);
  packed.writeBigUInt64BE(fromBase36(suffix), 7);
  return packed;
}

/** Null when the octets are no packed id. */
export function unpackId(packed: Buffer): string | null {
  if (packed.length !== PACKED_ID) return null;
  const kind = KINDS[packed.readUInt8(0)];
  const suffix = packed.readBigUInt64BE(7).toString(36).padStart(SUFFIX, '0');
  return kind === undefined || suffix.length > SUFFIX ? null : `${kind}_${packed.readUIntBE(1, 6)}_${suffix}`;
}

/** In two halves of six characters, each small enough for an exact number. */
function fromBase36(suffix: string): bigint {
  const half = SUFFIX / 2;
  return (
    BigInt(Number.parseInt(suffix.slice(0, half), 36)) * BigInt(36 ** half) +
    BigInt(Number.parseInt(suffix.slice(half), 36))
  );
}
