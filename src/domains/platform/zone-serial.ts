import { createHash } from 'node:crypto';
import { SECOND } from '../../core/clock.ts';
import { serialDistance } from '../../dns/server/transfer.ts';
import type { Context } from '../../store/context.ts';
import type { Tables } from '../../store/tables.ts';

/*
 * The serial number of the platform's zone: the time in seconds of its last change, or one more than the number before.
 * It is on disk before it is served, so that it never decreases, also after a restart or a restore. The setting
 * `zone-serial` has the number and a SHA-256 hash of the content.
 */

interface StoredSerial {
  serial: number;
  content: string;
}

const SETTING = 'zone-serial';

/**
 * The serial number of the zone; a new one, when it is on disk, if `described`, a text with all of its content, has
 * changed.
 */
export async function zoneSerial(
  { tables, writer, clock }: Pick<Context, 'tables' | 'writer' | 'clock'>,
  described: string,
): Promise<number> {
  const content = createHash('sha256').update(described).digest('base64');
  const known = storedSerial(tables);
  if (known?.content === content) return known.serial;
  return writer.run((tx) => {
    const serial = nextSerial(storedSerial(tx)?.serial ?? null, clock.now());
    tx.settings.put(SETTING, JSON.stringify({ serial, content } satisfies StoredSerial));
    return serial;
  });
}

/** The serial number that `postrider zone` prints. */
export function printedSerial(tables: Pick<Tables, 'settings'>, now: number): number {
  return storedSerial(tables)?.serial ?? nextSerial(null, now);
}

/** Larger than `before` in serial number arithmetic (RFC 1982). */
export function nextSerial(before: number | null, now: number): number {
  const time = Math.floor(now / SECOND) >>> 0;
  if (before === null || serialDistance(time, before) > 0) return time;
  // Some servers do not accept zero.
  return (before + 1) >>> 0 || 1;
}

function storedSerial(tables: Pick<Tables, 'settings'>): StoredSerial | null {
  const value = tables.settings.get(SETTING);
  return value === null ? null : (JSON.parse(value) as StoredSerial); // only written above
}
