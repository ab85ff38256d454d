import type { Audience } from '../audience/service.ts';
import type { Domains } from '../domains/service.ts';
import { createRetention, registerRetentionMetrics } from '../events/retention.ts';
import type { Inbound } from '../inbound/inbound.ts';
import { createFailureNotices } from '../notices/failure-notices.ts';
import type { DaemonBackups } from './backups.ts';
import type { DaemonDelivery } from './delivery.ts';
import type { DaemonEvents } from './events.ts';
import type { DaemonSending } from './sending.ts';
import type { DaemonBase } from './storage.ts';

interface BackgroundParts
  extends Pick<DaemonEvents, 'webhookSender'>,
    DaemonDelivery,
    Pick<DaemonSending, 'campaignRunner' | 'sequenceRunner'> {
  backups: DaemonBackups;
  domains: Domains;
  audience: Audience;
  inbound: Inbound;
}

/**
 * Starts retention, backups, the verification of domains, deliveries, campaigns and calls of webhooks. Those that were
 * created earlier have their steps of the stop already: they stop after the listeners.
 */
export function startBackground(base: DaemonBase, parts: BackgroundParts): void {
  const { registry, tables, onStop } = base;
  const { backups, domains, audience } = parts;
  const retention = createRetention(base, {
    mayShrink: () => !audience.erasure.isClearingFile(),
    onPortion: registerRetentionMetrics(registry, () => retention.progress(), tables.freeSpace.pages),
  });
  retention.start();
  onStop(() => retention.stop());
  backups.held.start();
  onStop(() => backups.held.stop());
  const { schedule } = backups;
  if (schedule !== null) {
    schedule.start();
    onStop(() => schedule.stop());
  }
  const notices = createFailureNotices(base, { mail: parts.mail });
  // Ends deliveries in progress: their results are not waited for.
  onStop(async () => {
    await Promise.all([parts.mail.close(), notices.stop()]);
  });
  domains.jobs.start();
  onStop(() => domains.jobs.stop());
  parts.tls.start();
  parts.delivery.start();
  parts.sendingMonitor.start();
  parts.holds.start();
  parts.campaignRunner.start();
  parts.sequenceRunner.start();
  parts.inbound.background.start();
  parts.webhookSender.start();
  notices.start();
}
