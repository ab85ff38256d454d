import { HOUR, iso, MINUTE } from '../../core/clock.ts';
import type { RateFigures } from '../../events/event-types.ts';
import { describeFigures, REMEDIES } from '../../reputation/limits.ts';
import type { DaemonReport, DoctorContext } from '../context.ts';
import { failure, ok, quoted, type Result, unknown, warning } from '../finding.ts';
import { examineStart } from '../start.ts';

/* Checks of what the daemon does: itself, the queue, webhooks, background work. */

/** p99 of the delay of the event loop, in seconds. */
const SLOW_LOOP_SECONDS = 0.25;
const LOOP_METRIC = 'nodejs_eventloop_lag_p99_seconds';
const RESTART = 'journalctl -u postrider -n 100; systemctl restart postrider';
const FREE_SPACE = 'df -h; df -i; free space on the disk of data.dir';
const UNRECORDED = `journalctl -u postrider -n 100; ${FREE_SPACE}`;

/**
 * Failures: a configured daemon that does not run with what prevents its start, an API that does not answer, and each
 * check of `/readyz` that fails, an overdue backup among them. Warnings: a scheduled backup that failed and is not overdue
 * yet, an event loop whose delay (p99) is 250 ms or more, and a stopped daemon without configuration file and database.
 */
export async function examineDaemon({ daemon, config, database }: DoctorContext): Promise<Result[]> {
  const state = await daemon();
  if (state.kind === 'stopped') {
    const obstacles = await examineStart(config, database);
    // There is a configuration file or a database, so that a daemon should run.
    const isConfigured = config.file !== null || database.kind === 'open';
    return [judgeStopped(isConfigured, obstacles), ...obstacles];
  }
  if (state.kind === 'unknown') return [unknown('daemon', state.reason)];
  if (state.kind === 'unreachable')
    return [
      failure(
        'daemon',
        `The daemon runs${process(state.pid)}, but its API does not answer: ${state.reason}.`,
        RESTART,
      ),
    ];
  const { report, pid } = state;
  const results = report.checks.flatMap((entry) =>
    entry.check === 'backup' ? backupResults(entry) : readyResults(entry),
  );
  const lag = report.metrics.get(LOOP_METRIC) ?? 0;
  if (lag >= SLOW_LOOP_SECONDS)
    results.push(
      warning(
        'event loop',
        `Its delay (p99) is ${Math.round(lag * 1000)} ms: the machine is overloaded.`,
        `top -H${pid === null ? '' : ` -p ${pid}`}`,
      ),
    );
  return results.length > 0
    ? results
    : [ok('daemon', `Runs${process(pid)}; all ${report.checks.length} checks of /readyz pass.`)];
}

type ReadyCheck = DaemonReport['checks'][number];

function readyResults({ check: name, ok: passes, message }: ReadyCheck): Result[] {
  return passes ? [] : [failure(`readyz: ${name}`, quoted(message ?? 'The check fails.'), remedyOf(name))];
}

/** An overdue backup, or one that failed and is tried again. */
function backupResults({ ok: passes, message, details }: ReadyCheck): Result[] {
  const error = typeof details?.['error'] === 'string' ? details['error'] : null;
  if (passes && error === null) return [];
  const last = error === null ? '' : `The last scheduled backup failed: ${quoted(error)}`;
  const fix = backupRemedy(error ?? '');
  if (passes) return [warning('backup', last, fix)];
  const overdue = `${quoted(message ?? 'The backup is overdue')}.`;
  return [failure('backup', last === '' ? overdue : `${overdue} ${last}`, fix)];
}

function backupRemedy(error: string): string {
  if (/\b(?:ENOSPC|EDQUOT|SQLITE_FULL)\b|free space/.test(error)) return 'df -h';
  if (/\bE(?:ACCES|PERM|ROFS)\b/.test(error) && error.includes("'/"))
    return 'The user of the daemon must own backup.dir, and the unit allow it: systemctl edit postrider, [Service], ReadWritePaths=';
  return 'journalctl -u postrider --grep backup; postrider backup create DIRECTORY';
}

/** A restart helps neither a full disk nor a full queue, and sends messages again whose outcomes are not recorded. */
function remedyOf(readinessCheck: string): string {
  if (readinessCheck === 'sends') return `${FREE_SPACE}; postrider queue list`;
  if (readinessCheck === 'database' || readinessCheck === 'outcomes') return UNRECORDED;
  return RESTART;
}

function judgeStopped(isConfigured: boolean, obstacles: readonly Result[]): Result {
  const isBlocked = obstacles.some(({ status }) => status === 'failure');
  const start = isBlocked
    ? 'It cannot start: the reasons are in the other findings of this check.'
    : 'Nothing that prevents a start was found.';
  return (isConfigured ? failure : warning)(
    'daemon',
    `The daemon is not running: nothing is sent or received. ${start} Checks that need it were skipped.`,
    isBlocked
      ? 'journalctl -u postrider -n 50; after the repair: systemctl start postrider, or: postrider serve'
      : 'journalctl -u postrider -n 50; systemctl start postrider, or: postrider serve',
  );
}

function process(pid: number | null): string {
  return pid === null || pid === 0 ? '' : ` (process ${pid})`;
}

const OLD_MS = 15 * MINUTE;
const VERY_OLD_MS = 2 * HOUR;
/** Deferred messages become ready within seconds of their due time. */
const OVERDUE_MS = 10 * MINUTE;
const NEARLY_FULL = 0.8;

/**
 * Mail that has been ready for 15 minutes is a warning, for 2 hours a failure, unless an address has a warm-up. From 80
 * % of the limit on the queue is a warning, at the limit a failure, as is deferred mail overdue by 10 minutes.
 */
export async function examineQueue({ state, daemon, clock, config }: DoctorContext): Promise<Result[]> {
  const now = clock.now();
  const { messages, oldestWaiting, nextDue } = (await state()).queue;
  const running = await daemon();
  const isRunning = running.kind === 'running';
  const limit = config.limits.queuedMessages;
  // Mail may be ready for days.
  const isWarmingUp =
    config.delivery.egress.some(({ warmup }) => warmup !== undefined) || config.reputation.ramp.messages > 0;
  const results: Result[] = [];
  const list = 'postrider queue list';
  const waited = oldestWaiting === null ? 0 : now - oldestWaiting;
  if (waited >= OLD_MS && isWarmingUp)
    results.push(
      warning(
        'oldest message',
        `A message has been ready for ${duration(waited)}: it waits for the warm-up of a source address or the ramp of a new sender, or is not sent.`,
        'postrider warmup show; postrider queue list',
      ),
    );
  else if (waited >= OLD_MS)
    results.push(
      (waited >= VERY_OLD_MS ? failure : warning)(
        'oldest message',
        `A message has been ready for ${duration(waited)}${isRunning ? ' and was not sent' : '; the daemon is not running'}.`,
        list,
      ),
    );
  if (nextDue !== null && isRunning && now - nextDue >= OVERDUE_MS)
    results.push(
      failure(
        'deferred messages',
        `A deferred message has been due for ${duration(now - nextDue)} without a new attempt: delivery does not advance.`,
        RESTART,
      ),
    );
  const share = messages / limit;
  if (share >= 1)
    results.push(
      failure('queue', `The queue has ${messages} messages, the limit: sends are refused with 503.`, list),
    );
  else if (share >= NEARLY_FULL)
    results.push(warning('queue', `The queue has ${messages} of at most ${limit} messages.`, list));
  const report = isRunning ? running.report : null;
  for (const { kind, id, reason } of listed(report, 'parked', ['kind', 'id', 'reason']))
    results.push(
      warning(
        `${kind} ${id}`,
        `Its mail cannot be prepared and waits: ${quoted(reason)}`,
        `postrider queue list --${kind} ${id}`,
      ),
    );
  // Sites that have had one connection for hours because they asked to send less.
  for (const { site, since } of listed(report, 'slowSites', ['site', 'since']))
    results.push(
      warning(
        `site ${site}`,
        `It has asked to send less since ${quoted(since)}, and gets one connection at a time: usually because of the reputation of the address or of a sender.`,
        'postrider stats --by provider',
      ),
    );
  return results.length > 0
    ? results
    : [ok('queue', `${messages} messages; none waits for longer than it should.`)];
}

const MAX_PARKED = 10;

/** The texts of a list in the details of the queue's check of `/readyz`. */
function listed<Name extends string>(
  report: DaemonReport | null,
  list: string,
  names: readonly Name[],
): Record<Name, string>[] {
  const found: unknown = report?.checks.find(({ check }) => check === 'queue')?.details?.[list];
  if (!Array.isArray(found)) return [];
  return found.slice(0, MAX_PARKED).map((entry: Record<string, unknown>) => {
    const texts = names.map((name) => [name, String(entry[name])]);
    return Object.fromEntries(texts) as Record<Name, string>; // a text for each name
  });
}

/**
 * Failures: webhooks that the daemon has disabled, and a call that has been due for 10 minutes while the daemon
 * runs. A webhook whose calls fail is a warning.
 */
export async function examineWebhooks({ state, clock, daemon }: DoctorContext): Promise<Result[]> {
  const now = clock.now();
  const { webhooks, nextWebhookCall: nextCall } = await state();
  const isRunning = (await daemon()).kind === 'running';
  const results = webhooks.map((webhook): Result => {
    const { webhookId, accountId, url, isActive, offReason, failingSince } = webhook;
    const of = `${webhookId} --account ${accountId}`;
    const show = `postrider webhook deliveries ${of}`;
    const where = quoted(url, 100);
    if (!isActive) {
      const why =
        offReason === 'gone' ? 'the endpoint responded with 410 Gone' : 'its calls failed for too long';
      return failure(
        webhookId,
        `The daemon disabled the webhook to ${where}: ${why}. Its events are not sent.`,
        `${show}; postrider webhook enable ${of}`,
      );
    }
    return warning(
      webhookId,
      `Calls to ${where} have failed${failingSince === null ? '' : ` since ${iso(failingSince)}`}; they are retried for three days.`,
      show,
    );
  });
  if (isRunning && nextCall !== null && now - nextCall >= OVERDUE_MS)
    results.push(
      failure(
        'webhook calls',
        `A call has been due for ${duration(now - nextCall)} and was not sent.`,
        RESTART,
      ),
    );
  return results.length > 0 ? results : [ok('webhooks', 'No webhook fails.')];
}

/** Mail that is slowed or stopped automatically, or comes close, and campaigns that were stopped: warnings. */
export async function examineLimits({ state }: DoctorContext): Promise<Result[]> {
  const { limits, limitCount, stoppedCampaigns, stoppedCampaignCount } = await state();
  const results = limits.map(({ limitId, accountId, level, since, text, remedy }) => {
    const command =
      level === 'notice' ? 'postrider reputation' : `postrider sending-limits resume ${limitId}`;
    return warning(
      `${accountId} ${limitId}`,
      `${quoted(text, MAX_LIMIT_TEXT)} Since ${since}.`,
      `${remedy} ${level === 'notice' ? `See: ${command} --account ${accountId}` : `Then: ${command} --reason …`}`,
    );
  });
  for (const row of stoppedCampaigns) {
    // Sound: only the campaign runner writes it.
    const figures = JSON.parse(row.paused_figures) as RateFigures;
    const rate = describeFigures(row.paused_reason, figures);
    results.push(
      warning(
        `${row.account_id} ${row.campaign_id}`,
        `The campaign ${quoted(row.name, MAX_NAME)} is stopped: ${rate}. Since ${iso(row.updated_at)}.`,
        `${REMEDIES[row.paused_reason]} Then: postrider campaign resume ${row.campaign_id} --account ${row.account_id} --reason …`,
      ),
    );
  }
  const hidden = limitCount - limits.length + (stoppedCampaignCount - stoppedCampaigns.length);
  if (hidden > 0)
    results.push(
      warning('automatic limits', `${hidden} further ones are in force.`, 'postrider sending-limits list'),
    );
  return results.length > 0
    ? results
    : [ok('automatic limits', 'No mail is slowed or stopped automatically.')];
}

const MAX_LIMIT_TEXT = 300;
const MAX_NAME = 100;

/** Outcomes that are not recorded and rows that cannot be read. The numbers are metrics of the running daemon. */
export async function examineBackgroundWork({ daemon }: DoctorContext): Promise<Result[]> {
  const state = await daemon();
  const metric = (name: string) => (state.kind === 'running' ? (state.report.metrics.get(name) ?? 0) : 0);
  const unreadable = metric('postrider_delivery_unreadable');
  const results: Result[] = [];
  if (metric('postrider_delivery_unrecorded') > 0)
    results.push(
      failure(
        'outcomes',
        'Results of deliveries cannot be recorded, so messages may be sent twice.',
        UNRECORDED,
      ),
    );
  if (unreadable > 0)
    results.push(
      failure(
        'queue rows',
        `${unreadable} queues or rows cannot be read: the database may be damaged.`,
        'postrider doctor --integrity-timeout 3600',
      ),
    );
  return results.length > 0 ? results : [ok('background work', 'Nothing is pending.')];
}

function duration(ms: number): string {
  if (ms < 2 * HOUR) return `${Math.round(ms / MINUTE)} minutes`;
  return `${Math.round(ms / HOUR)} hours`;
}
