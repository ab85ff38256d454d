import type { Seal } from '../core/seal.ts';

/*
 * State of a sign-in or a setup that the browser stores until it returns it: sealed, so that requests for many of them
 * occupy nothing here, and valid until a time.
 */

const TIME_BYTES = 8;

/** `context`: what the state is for. `until`: epoch ms. */
export function sealState(seal: Seal, state: Buffer, context: string, until: number): Buffer {
  const time = Buffer.alloc(TIME_BYTES);
  time.writeBigUInt64BE(BigInt(until));
  return seal.seal(Buffer.concat([time, state]), context);
}

/** Null: it was not sealed here for this context, or has expired. */
export function openState(seal: Seal, sealed: Buffer, context: string, now: number): Buffer | null {
  let opened: Buffer;
  try {
    opened = seal.open(sealed, context);
  } catch {
    return null;
  }
  return Number(opened.readBigUInt64BE()) > now ? opened.subarray(TIME_BYTES) : null;
}
