import { allZoneKeys, type ZoneKey } from '../domains/platform/platform-zone.ts';
import { levelRank } from '../reputation/judgement.ts';
import { listLimits, type SendingLimit } from '../reputation/monitor.ts';
import type { StoppedSend } from '../store/campaigns/campaign-sends.ts';
import type { DomainRow } from '../store/domains/domains.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';

/**
 * The data of the checks from the database, from one read with bounded lists. Rows contain no secrets.
 */
export interface DoctorState {
  /** Worst first, or the registrations of the named domain. */
  domains: DomainRow[];
  /** Of all accounts. */
  domainCount: number;
  /** Keys of secondary lanes, which the platform's zone publishes. */
  zoneKeys: ZoneKey[];
  zoneKeyCount: number;
  queue: {
    messages: number;
    /** Due time of the message that has been ready for the longest time, epoch ms; null: none is ready. */
    oldestWaiting: number | null;
    /** When the next deferred message is due; null: none is deferred. */
    nextDue: number | null;
  };
  webhooks: {
    webhookId: string;
    accountId: string;
    url: string;
    isActive: boolean;
    offReason: 'gone' | 'failing' | null;
    failingSince: number | null;
  }[];
  /** Automatic limits in force, the strictest first, and campaigns that were stopped automatically. */
  limits: SendingLimit[];
  limitCount: number;
  stoppedCampaigns: StoppedSend[];
  stoppedCampaignCount: number;
  /** When the next webhook call that waits for its time is due; null: none waits. */
  nextWebhookCall: number | null;
  certificates: {
    host: string;
    notAfter: number | null;
    failures: number;
    lastError: string | null;
  }[];
}

/** Keys of the platform's zone that are examined. */
const MAX_ZONE_KEYS = 50;
const MAX_WEBHOOKS = 20;
const MAX_LIMITS = 20;
const MAX_CERTIFICATES = 20;
/** Rows of the queue that are examined for the oldest one. */
const MAX_QUEUE_ROWS = 5000;

export const doctorState = readQuery(
  'doctorState',
  (tables: Tables, domain: string | null, maxDomains: number): DoctorState => {
    const keys = allZoneKeys(tables);
    return {
      domains:
        domain === null ? tables.domains.worstFirst(maxDomains) : tables.domains.ofName(domain, maxDomains),
      domainCount: tables.domains.count(),
      zoneKeys: keys.slice(0, MAX_ZONE_KEYS),
      zoneKeyCount: keys.length,
      queue: {
        messages: tables.queue.count(),
        oldestWaiting: tables.queue.oldestWaiting(MAX_QUEUE_ROWS),
        nextDue: tables.queue.nextDue(),
      },
      webhooks: tables.webhooks.failing(MAX_WEBHOOKS).map((row) => ({
        webhookId: row.webhook_id,
        accountId: row.account_id,
        url: row.url,
        isActive: row.is_active === 1,
        offReason: row.off_reason,
        failingSince: row.failing_since,
      })),
      limits: listLimits(tables, null)
        .toSorted((a, b) => levelRank(b.level) - levelRank(a.level))
        .slice(0, MAX_LIMITS),
      limitCount: tables.sendingLimits.countByLevel().reduce((sum, { limits }) => sum + limits, 0),
      stoppedCampaigns: tables.campaignSends.stopped(MAX_LIMITS),
      stoppedCampaignCount: tables.campaignSends.countStopped(),
      nextWebhookCall: tables.webhookDeliveries.nextDue(),
      certificates: tables.certificates.soonestDue(MAX_CERTIFICATES).map((row) => ({
        host: row.host,
        notAfter: row.not_after,
        failures: row.failures,
        lastError: row.last_error,
      })),
    };
  },
);
