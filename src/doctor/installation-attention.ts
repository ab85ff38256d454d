import { statfs } from 'node:fs/promises';
import type { BackupSchedule } from '../backup/schedule.ts';
import type { Config } from '../config/schema.ts';
import type { Clock } from '../core/clock.ts';
import type { Delivery } from '../delivery/delivery.ts';
import { egressOverview } from '../delivery/egress-overview.ts';
import { presentSite } from '../delivery/explain.ts';
import type { Context } from '../store/context.ts';
import { NO_ACCOUNT } from '../store/readers/reads.ts';

/** What needs the operator. Times are ISO 8601. */
export type InstallationProblem =
  | { kind: 'queue'; reason: string }
  | { kind: 'disk'; freeBytes: number; minFreeBytes: number }
  | { kind: 'certificate'; host: string; error: string | null }
  | { kind: 'backup'; error: string }
  | { kind: 'address'; address: string; provider: string; reply: string; since: string; nextProbeAt: string }
  | { kind: 'site'; site: string; pool: string; state: 'suspended' | 'limited'; until: string };

export interface InstallationAttention {
  problems: InstallationProblem[];
  /** Messages in the queue, and mail in the inbox that is not marked as read. */
  counts: { queue: number; inbox: number };
}

type AttentionContext = Pick<Context, 'config' | 'clock' | 'tables' | 'reader'>;

/** Problems of one kind. */
const MAX_PROBLEMS = 20;

/** Reads facts that the daemon has; it asks no server. */
export async function installationAttention(
  context: AttentionContext,
  {
    delivery: { waits },
    backups,
  }: {
    delivery: Pick<Delivery, 'waits'>;
    /** Null: no backups are scheduled. */
    backups: Pick<BackupSchedule, 'status' | 'overdue'> | null;
  },
): Promise<InstallationAttention> {
  const { config, reader, clock } = context;
  const stopped = waits.stopped();
  const backup = backups === null ? null : (backups.overdue() ?? backups.status().error);
  const [queue, inbox] = await Promise.all([
    reader.table(NO_ACCOUNT, 'queue', 'count'),
    reader.table(NO_ACCOUNT, 'keptMail', 'countUnread'),
  ]);
  return {
    problems: [
      ...(stopped === null ? [] : [{ kind: 'queue' as const, reason: stopped }]),
      ...(await diskProblem(config)),
      ...(backup === null ? [] : [{ kind: 'backup' as const, error: backup }]),
      ...refusedAddresses(context),
      ...slowSites(waits, clock),
      ...certificateProblems(context),
    ],
    counts: { queue, inbox },
  };
}

/** A warning in time, as in the check of the disk. */
async function diskProblem({ data: { dir }, limits }: Config): Promise<InstallationProblem[]> {
  const { bavail, bsize } = await statfs(dir);
  const freeBytes = bavail * bsize;
  const minFreeBytes = limits.freeDiskBytes;
  return freeBytes < 2 * minFreeBytes ? [{ kind: 'disk', freeBytes, minFreeBytes }] : [];
}

function refusedAddresses({ config, tables, clock }: AttentionContext): InstallationProblem[] {
  return egressOverview({ config, tables }, clock.now())
    .refused.slice(0, MAX_PROBLEMS)
    .map(({ address, provider, reply, since, nextProbeAt }) => ({
      kind: 'address',
      address,
      provider,
      reply,
      since,
      nextProbeAt,
    }));
}

function slowSites(waits: Delivery['waits'], clock: Clock): InstallationProblem[] {
  return waits
    .sites()
    .map((facts) => presentSite(facts, clock))
    .flatMap(({ site, pool, suspendedUntil, limitedUntil }): InstallationProblem[] => {
      if (suspendedUntil !== null)
        return [{ kind: 'site', site, pool, state: 'suspended', until: suspendedUntil }];
      return limitedUntil === null
        ? []
        : [{ kind: 'site', site, pool, state: 'limited', until: limitedUntil }];
    })
    .slice(0, MAX_PROBLEMS);
}

/** Hosts whose order failed, and certificates that are not valid any more. */
function certificateProblems({ tables, clock }: AttentionContext): InstallationProblem[] {
  const rows = [
    ...tables.certificates.unissued(MAX_PROBLEMS),
    ...tables.certificates.soonestDue(MAX_PROBLEMS),
  ];
  return rows
    .filter(({ failures, not_after }) => failures > 0 || (not_after !== null && not_after < clock.now()))
    .slice(0, MAX_PROBLEMS)
    .map(({ host, failures, last_error }) => ({
      kind: 'certificate',
      host,
      error: failures > 0 ? (last_error ?? '') : null,
    }));
}
