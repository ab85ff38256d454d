import { SECOND } from '../core/clock.ts';
import { examineBlocklists } from './checks/blocklists.ts';
import { examineCertificates } from './checks/certificates.ts';
import { examineIntegrity, examineWriteAheadLog } from './checks/database.ts';
import { examineDelegation } from './checks/delegation.ts';
import { examineAlignment, examineDomainRecords } from './checks/domains.ts';
import { examineEgressHealth, examineEgressProxies, examineSecondaryLane } from './checks/egress.ts';
import { examineHostname, examinePublicUrl, examineReverseDns, examineSpf } from './checks/host.ts';
import { examineListeners } from './checks/listeners.ts';
import { examineClock, examineDataDirectory, examineDisk, examineRuntime } from './checks/machine.ts';
import { examineOutbound, examineSources } from './checks/outbound.ts';
import { examinePlatformZone } from './checks/platform-zone.ts';
import { examineResolvers } from './checks/resolver.ts';
import {
  examineBackgroundWork,
  examineDaemon,
  examineLimits,
  examineQueue,
  examineWebhooks,
} from './checks/work.ts';
import type { Check, CheckGroup } from './context.ts';

/** What a check needs, and its time limit. */
type Limits = Pick<Check, 'needs' | 'timeoutMs'>;

/**
 * The checks, in the order of their findings: id, title, group, function, limits. A new check is an entry here, a section in
 * docs/reference/checks.md and rows in test/doctor/broken/.
 */
const TABLE: readonly [id: string, title: string, CheckGroup, Check['run'], Limits?][] = [
  ['runtime', 'Node.js runtime', 'Machine', examineRuntime],
  ['data-directory', 'Data directory', 'Machine', examineDataDirectory],
  ['disk', 'Disk', 'Machine', examineDisk],
  ['clock', 'Clock', 'Machine', examineClock],
  ['resolver', 'DNS resolver', 'Network', examineResolvers],
  ['source-addresses', 'Source addresses', 'Network', examineSources],
  ['outbound-smtp', 'Outbound SMTP', 'Network', examineOutbound, { timeoutMs: 30 * SECOND }],
  [
    'egress-proxies',
    'Source addresses behind proxies',
    'Network',
    examineEgressProxies,
    { timeoutMs: 30 * SECOND },
  ],
  ['secondary-lane', 'Secondary lane', 'Network', examineSecondaryLane, { timeoutMs: 30 * SECOND }],
  ['listeners', 'Listeners', 'Network', examineListeners, { needs: 'daemon', timeoutMs: 30 * SECOND }],
  ['certificates', 'Certificates', 'Network', examineCertificates],
  ['hostname', 'Host name and EHLO', 'Platform DNS', examineHostname],
  ['reverse-dns', 'Reverse DNS', 'Platform DNS', examineReverseDns],
  ['spf', 'SPF of the platform', 'Platform DNS', examineSpf],
  ['delegation', "Delegation of the platform's zone", 'Platform DNS', examineDelegation],
  ['platform-zone', 'Records of the platform', 'Platform DNS', examinePlatformZone, { needs: 'database' }],
  ['public-url', 'Public address of links', 'Platform DNS', examinePublicUrl],
  ['blocklists', 'DNS blocklists', 'Platform DNS', examineBlocklists, { timeoutMs: 25 * SECOND }],
  [
    'domain-records',
    'Records of domains',
    'Domains',
    examineDomainRecords,
    { needs: 'database', timeoutMs: 45 * SECOND },
  ],
  [
    'dmarc-alignment',
    'DMARC alignment',
    'Domains',
    examineAlignment,
    { needs: 'database', timeoutMs: 45 * SECOND },
  ],
  ['database-integrity', 'Database integrity', 'Database', examineIntegrity, { timeoutMs: 3600 * SECOND }],
  ['write-ahead-log', 'Write-ahead log', 'Database', examineWriteAheadLog],
  ['daemon', 'Daemon', 'Work', examineDaemon],
  ['queue', 'Queue', 'Work', examineQueue, { needs: 'database' }],
  ['egress-health', 'Source address health', 'Work', examineEgressHealth, { needs: 'database' }],
  ['sending-limits', 'Automatic limits', 'Work', examineLimits, { needs: 'database' }],
  ['webhooks', 'Webhooks', 'Work', examineWebhooks, { needs: 'database' }],
  ['background-work', 'Background work', 'Work', examineBackgroundWork, { needs: 'daemon' }],
];

export const CHECKS: readonly Check[] = TABLE.map(([id, title, group, run, limits]) => ({
  id,
  title,
  group,
  run,
  ...limits,
}));
