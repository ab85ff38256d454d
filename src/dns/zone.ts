import { canonicalName, isWithin, parentOf } from './names.ts';
import type { ZoneRecord } from './zone-record.ts';

/** Where a nameserver finds its records: any store that can tell what is at a name. Names are canonical. */
export interface Zone {
  /** [] when the name exists without records, or only as part of a longer one (RFC 8020); undefined when not. */
  find(name: string): readonly ZoneRecord[] | undefined;
}

/**
 * A zone over a list. `list` is called for every question and is indexed again only when it returns another
 * array, so it should return the same one until something changes.
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
    if (name === null || !origins.some((origin) => isWithin(name, origin))) continue; // never asked for
    const here = names.get(name);
    if (here) here.push(record);
    else names.set(name, [record]);
    for (let up = parentOf(name); origins.some((origin) => isWithin(up, origin)); up = parentOf(up)) {
      if (!names.has(up)) names.set(up, []);
      if (up === '.') break;
    }
  }
  return names;
}
