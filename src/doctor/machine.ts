import { networkInterfaces } from 'node:os';
import { unitOf } from '../config/installations.ts';
import { normalizeAddress } from '../dns/address-kinds.ts';
import type { Machine } from './context.ts';

/** Mail between servers uses port 25 (RFC 5321 §4.5.4.2). */
const MX_PORT = 25;
/** RFC 1035 §4.2. */
const DNS_PORT = 53;

/** The machine that runs this process, for the daemon of a configuration file. */
export const thisMachine = (configFile: string | null): Machine => ({
  nodeVersion: process.versions.node,
  uid: process.geteuid?.() ?? null,
  addresses: () =>
    Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .map(({ address }) => normalizeAddress(address)),
  mxPort: MX_PORT,
  dnsPort: DNS_PORT,
  serviceKeyFile: `/run/credentials/${unitOf(configFile)}.service/master.key`,
});
