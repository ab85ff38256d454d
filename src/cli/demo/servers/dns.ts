import { createNameserver } from '../../../dns/nameserver.ts';
import type { ZoneRecord } from '../../../dns/zone-record.ts';
import { LOOPBACK, NAMES } from './names.ts';

/** A name server in which every domain has the receiving server as its MX. */
export interface PrivateDns {
  address: string;
  publish(records: readonly ZoneRecord[]): void;
  close(): Promise<void>;
}

const TTL = 60;

/**
 * Listens on a free port of the loopback address until `close`. Records replace only those with the same name, type and
 * value; without any, a recipient domain has the MX and a name of the sender does not exist.
 */
export async function startPrivateDns(): Promise<PrivateDns> {
  const published = new Map<string, ZoneRecord[]>();
  const publish = (records: readonly ZoneRecord[]) => {
    for (const record of records) {
      const name = record.name.toLowerCase();
      const others = (published.get(name) ?? []).filter(
        ({ type, value }) => type !== record.type || value !== record.value,
      );
      published.set(name, [...others, record]);
    }
  };
  publish([
    { name: NAMES.receiver, type: 'A', value: LOOPBACK, ttl: TTL },
    { name: NAMES.platform, type: 'A', value: LOOPBACK, ttl: TTL },
  ]);
  const server = await createNameserver({
    // All recipient domains lead to the receiving server; names of the sender are as published.
    zone: {
      find: (name) =>
        published.get(name) ??
        (name.endsWith(NAMES.sender) || name.startsWith('_') || !name.includes('.')
          ? undefined
          : [{ name, type: 'MX', value: NAMES.receiver, priority: 10, ttl: TTL }]),
    },
    origins: ['.'],
    listen: { host: LOOPBACK, port: 0 },
    onError: (error) => console.error('private DNS server failed:', error),
  });
  return { address: `${server.host}:${server.port}`, publish, close: () => server.close() };
}
