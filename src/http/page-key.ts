import { invalid, type Refusal } from '../core/refusal.ts';

/** Page keys: opaque to callers, a row number to us, tied to the list they were made for. */
export function pageKey(list: string, seq: number): string {
  return Buffer.from(`${list}:${seq}`).toString('base64url');
}

/** The row number, null when there is no key (or an empty one), a refusal when it is not one of this list's. */
export function readPageKey(list: string, key: string | undefined): number | null | Refusal {
  if (key === undefined || key === '') return null;
  const match = /^([a-z-]+):(\d{1,15})$/.exec(Buffer.from(key, 'base64url').toString('latin1'));
  return match?.[1] === list ? Number(match[2]) : invalid('lastKey', 'is not a nextKey of this list');
}
