import { canonicalName, isWithin, parentOf } from './names.ts';
import type { ZoneRecord } from './zone-record.ts';

/** The records that a name server serves. Names are canonical. */
export interface Zone {
  /** [] for a name without records, or above a name with records (RFC 8020); undefined: the name does not exist. */
  find(name: string): readonly ZoneRecord[] | undefined;
}

/**
 * A zone from a list of records. `list` is called for every query; its result is indexed again only when it is another
 * array, so it should return the same array until a record changes.
 */
export function zoneOfList(list: () => readonly ZoneRecord[], origins: readonly string[]): Zone {
  let indexed: readonly ZoneRecord[] | null = null;
  let names = new Map<string, ZoneRecord[]>();
  return {
    find: (name) => {
      const records = list();
      if (records !== indexed) {
        names = index(records, origins);
        indexed = records;
      }
      return names.get(name);
    },
  };
}

function index(records: readonly ZoneRecord[], origins: readonly string[]): Map<string, ZoneRecord[]> {
  const names = new Map<string, ZoneRecord[]>();
  for (const record of records) {
    const name = canonicalName(record.name);
    if (name === null || !origins.some((origin) => isWithin(name, origin))) continue; // outside of the zones
    const existing = names.get(name);
    if (existing) existing.push(record);
    else names.set(name, [record]);
    for (let up = parentOf(name); origins.some((origin) => isWithin(up, origin)); up = parentOf(up)) {
      if (!names.has(up)) names.set(up, []);
      if (up === '.') break;
    }
  }
  return names;
}
