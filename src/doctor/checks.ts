import { blocklistCheck } from './checks/blocklists.ts';
import { certificatesCheck } from './checks/certificates.ts';
import { clockCheck } from './checks/clock.ts';
import { dataDirectoryCheck } from './checks/data-directory.ts';
import { integrityCheck, writeAheadLogCheck } from './checks/database.ts';
import { delegationCheck } from './checks/delegation.ts';
import { diskCheck } from './checks/disk.ts';
import { alignmentCheck, domainRecordsCheck } from './checks/domains.ts';
import { egressHealthCheck, egressProxiesCheck } from './checks/egress.ts';
import { hostnameCheck, publicUrlCheck, spfCheck } from './checks/host.ts';
import { listenersCheck } from './checks/listeners.ts';
import { outboundCheck, sourcesCheck } from './checks/outbound.ts';
import { platformZoneCheck } from './checks/platform-zone.ts';
import { resolverCheck } from './checks/resolver.ts';
import { reverseDnsCheck } from './checks/reverse-dns.ts';
import { runtimeCheck } from './checks/runtime.ts';
import { secondaryLaneCheck } from './checks/secondary-lane.ts';
import { backgroundCheck, daemonCheck, queueCheck, webhookCheck } from './checks/work.ts';
import type { Check } from './context.ts';

/**
 * The checks, in the order of their findings. Each gathers facts with I/O and judges them in a pure function. A new check
 * is an entry here, a section in docs/troubleshooting.md and rows in test/doctor/broken/.
 */
export const CHECKS: readonly Check[] = [
  runtimeCheck,
  dataDirectoryCheck,
  diskCheck,
  clockCheck,
  resolverCheck,
  sourcesCheck,
  outboundCheck,
  egressProxiesCheck,
  secondaryLaneCheck,
  listenersCheck,
  certificatesCheck,
  hostnameCheck,
  reverseDnsCheck,
  spfCheck,
  delegationCheck,
  platformZoneCheck,
  publicUrlCheck,
  blocklistCheck,
  domainRecordsCheck,
  alignmentCheck,
  integrityCheck,
  writeAheadLogCheck,
  daemonCheck,
  queueCheck,
  egressHealthCheck,
  webhookCheck,
  backgroundCheck,
];
