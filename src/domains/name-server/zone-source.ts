import { isWithin } from '../../dns/names.ts';
import { type Zone, zoneOfList } from '../../dns/zone.ts';
import type { ZoneRecord } from '../../dns/zone-record.ts';
import type { KeySlot } from '../../store/domains/domains.ts';
import type { Tables } from '../../store/tables.ts';
import { SLOT_NAMES } from '../key-slots.ts';
import { zoneKeyRecord } from '../platform/zone-keys.ts';

/**
 * The platform's zone for the name server. The records of the platform are a short list in memory; the keys of domains,
 * of which there may be many thousands, are read from the database for each query and in pages for a transfer.
 */
export interface ZoneSource {
  zone: Zone;
  /** All records but the SOA, in portions, with a pause after each page of keys. */
  pages(): AsyncGenerator<readonly ZoneRecord[]>;
}

export interface ZoneSourceDeps {
  hostname: string;
  tables: Pick<Tables, 'dkimKeys'>;
  /** The records of the platform, SOA first; another array after a change. */
  records: () => readonly ZoneRecord[];
}

/** Keys that are read at a time: about a millisecond. */
const PAGE_SIZE = 100;

/**
 * The records of the platform are indexed once for each array that `records` returns. Keys are never cached: `find`
 * below `dkim.<hostname>` reads those of one domain, `pages` 100 at a time.
 */
export function createZoneSource({ hostname, tables, records }: ZoneSourceDeps): ZoneSource {
  const keyHost = `dkim.${hostname}`;
  const listed = zoneOfList(records, [hostname]);

  /** The keys of one domain: at `<id>.dkim.<hostname>`, and below it. */
  function findKeys(name: string): readonly ZoneRecord[] | undefined {
    const labels = name.slice(0, -keyHost.length - 1).split('.');
    const [id = '', slot, ...more] = labels.toReversed();
    if (more.length > 0) return undefined;
    const keys = tables.dkimKeys.zoneKeysOf(id);
    if (keys.length === 0) return undefined;
    const wanted = slot === undefined ? 's' : slotNamed(slot);
    const found = keys.filter((key) => key.slot === wanted).map((key) => zoneKeyRecord({ hostname }, key));
    // The name of a domain exists even if all of its keys are below it.
    return found.length > 0 || slot === undefined ? found : undefined;
  }

  return {
    zone: {
      find: (name) => {
        if (name === keyHost) return [];
        return isWithin(name, keyHost) ? findKeys(name) : listed.find(name);
      },
    },
    pages: async function* () {
      yield records().filter(({ type }) => type !== 'SOA');
      for (let after = 0; ; ) {
        const keys = tables.dkimKeys.zonePage(after, PAGE_SIZE);
        const last = keys.at(-1);
        if (last === undefined) return;
        yield keys.map((key) => zoneKeyRecord({ hostname }, key));
        after = last.key_id;
        await new Promise((resume) => setImmediate(resume));
      }
    },
  };
}

/** The slot below the name of a domain; that of the required record has no label. */
function slotNamed(label: string): KeySlot | undefined {
  return SLOT_NAMES.find((slot) => slot === label && slot !== 's');
}
