import * as z from 'zod';
import {
  count,
  dnsServerAddress,
  duration,
  hostName,
  listen,
  listenOrOff,
  live,
  quota,
  restart,
  section,
} from './setting-types.ts';

/* The settings of the platform's name server and of the keys in its zone. */

const address = z.union([z.ipv4(), z.ipv6()]);

const nameServer = z.strictObject({ name: hostName, addresses: z.array(address).max(8).default([]) });

export const dnsServer = section({
  listen: restart(
    z.union([listenOrOff, z.array(listen).min(1).max(16)]).default('off'),
    'Addresses and ports of the name server that serves the zone of "hostname", over UDP and TCP, such as "192.0.2.1:53" or a list of them; or "off". Name the addresses themselves, not 0.0.0.0.',
  ),
  addresses: live(
    z.array(address).max(8).default([]),
    'Addresses of "hostname" in the zone. Required, unless an entry of delivery.egress with this host name has them.',
    'those of delivery.egress',
  ),
  nameServers: live(
    z.array(nameServer).max(13).default([]),
    'Name servers of the zone, the primary first: { name, addresses }. Addresses are needed for names within the zone.',
    'ns1.<hostname> with the addresses above',
  ),
  contact: live(
    z
      .string()
      .regex(
        /^[a-z0-9_-]+@[a-z0-9_-]+(\.[a-z0-9_-]+)+$/i,
        'must be a mail address without a dot before the @',
      )
      .optional(),
    'Mail address of the person in charge, for the SOA record.',
    'postmaster@<hostname>',
  ),
  secondaries: live(
    z.array(dnsServerAddress).max(16).default([]),
    'Secondary name servers ("ip" or "ip:port"): they may transfer the zone (AXFR) and are notified of changes (NOTIFY).',
    '[]',
  ),
  queriesPerSecond: restart(
    count.default(1000),
    'Queries per second that are answered at each address; others are dropped, so that mail is not delayed.',
  ),
  responsesPerSecond: restart(
    quota.default(20),
    'Identical UDP responses per second to one network (IPv4: /24, IPv6: /56); half of the others are dropped and half truncated. 0: no limit.',
  ),
});

/** Shorter periods would not leave time to retire and revoke the former key. */
const MIN_ROTATION_DAYS = 60;

export const domainSettings = section({
  dkimRotation: live(
    z
      .union(
        [
          z.literal('never'),
          duration.refine(
            (value) => value >= MIN_ROTATION_DAYS * 86_400_000,
            `must be at least ${MIN_ROTATION_DAYS}d`,
          ),
        ],
        `must be "never" or a duration of at least "${MIN_ROTATION_DAYS}d"`,
      )
      .optional(),
    'Age at which the DKIM keys in the zone of "hostname" are replaced, of domains that have published the recommended CNAME records; or "never".',
    '180d with dns.server.listen, else never',
  ),
  ed25519: live(
    z.boolean().default(false),
    'Whether domains with the recommended CNAME record also get an Ed25519 signature (RFC 8463).',
  ),
  platformSignature: live(
    z.boolean().default(false),
    'Whether each message also gets a signature of "hostname", for feedback loops that are registered for it (Yahoo). Its key is in the zone of the platform.',
  ),
});
