import type { ZoneRecord } from '../../dns/zone-record.ts';
import type { ZoneKeyRow } from '../../store/domains/domains.ts';
import type { PlatformKeyRow } from '../../store/domains/platform-keys.ts';
import type { Tables } from '../../store/tables.ts';
import { slotHost } from '../key-slots.ts';
import { keyRecordName, keyRecordValue, revokedRecordValue } from '../keys.ts';
import type { Platform } from './platform.ts';

/** DKIM keys in the platform's zone: those of domains, and those of the platform's own signature. */
export type ZoneKey =
  | Pick<ZoneKeyRow, 'alt_domain_id' | 'slot' | 'state' | 'public_key'>
  | Pick<PlatformKeyRow, 'selector' | 'state' | 'public_key'>;

/** Seconds; short, because keys are added, replaced and revoked. */
const KEY_TTL = 300;

/** The record of a key; that of a revoked key is empty (RFC 6376 §3.6.1). */
export function zoneKeyRecord(platform: Pick<Platform, 'hostname'>, key: ZoneKey): ZoneRecord {
  const name =
    'slot' in key
      ? slotHost(platform, key.alt_domain_id, key.slot)
      : keyRecordName({ domain: platform.hostname, selector: key.selector });
  const value = key.state === 'revoked' ? revokedRecordValue(key.public_key) : keyRecordValue(key.public_key);
  return { name, type: 'TXT', value, ttl: KEY_TTL };
}

/** All keys of the zone: for commands, not for the daemon. */
export function allZoneKeys(tables: Pick<Tables, 'dkimKeys' | 'platformKeys'>): ZoneKey[] {
  return [...tables.platformKeys.list(), ...tables.dkimKeys.zoneKeys()];
}
