import { closeSync, mkdirSync, openSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { DAY, HOUR, MINUTE } from '../../../src/core/clock.ts';
import type { DaemonReport } from '../../../src/doctor/context.ts';
import { insertCampaignSend } from '../../support/campaign-sends.ts';
import { limitRow } from '../../support/sending-limits.ts';
import { enqueue } from '../../support/store.ts';
import { type DoctorSetup, NOW } from '../setup.ts';
import { describeBroken } from './rows.ts';

function reporting(report: Partial<DaemonReport>) {
  return ({ setDaemon }: DoctorSetup) =>
    setDaemon({ kind: 'running', pid: 1, report: { checks: [], metrics: new Map(), ...report } });
}

function insertWebhook(
  { db }: DoctorSetup,
  columns: { isActive: 0 | 1; offReason: string | null; since: number },
): void {
  db.prepare(`
    INSERT INTO webhooks (webhook_id, account_id, name, url, events, is_active, off_reason, failing_since, created_at, updated_at)
    VALUES ('webhook_one', 'acct_one', 'Shop', 'https://shop.example/hooks', '["*"]', @isActive, @offReason, @since, 1, 1)`).run(
    columns,
  );
}

/** On day 5. */
const WARMING_UP = {
  name: 'new',
  address: '192.0.2.7',
  pools: ['default'],
  warmup: { started: new Date(NOW - 4 * DAY).toISOString().slice(0, 10), days: 30 },
};

describeBroken(
  'a damaged database and work that does not advance',
  [
    'database-integrity',
    'write-ahead-log',
    'daemon',
    'queue',
    'egress-health',
    'sending-limits',
    'webhooks',
    'background-work',
  ],
  [
    {
      title: 'damaged page of the database',
      check: 'database-integrity',
      break: ({ dataDir, db }) => {
        const insert = db.prepare('INSERT INTO settings (name, value) VALUES (?, ?)');
        db.exec('BEGIN');
        for (let n = 0; n < 2000; n++) insert.run(`name ${n}`, 'x'.repeat(100));
        db.exec('COMMIT');
        db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
        const root = db
          .prepare<[], number>("SELECT rootpage FROM sqlite_schema WHERE name = 'settings'")
          .pluck()
          .get();
        const fd = openSync(join(dataDir, 'postrider.db'), 'r+');
        // The header of the root page of a table.
        writeSync(fd, Buffer.alloc(100, 0x5a), 0, 100, ((root ?? 1) - 1) * 4096);
        closeSync(fd);
      },
      status: 'failure',
      subject: /postrider\.db$/,
      reason: /The database is damaged: settings: /,
      fix: /\.recover/,
    },
    {
      title: 'database file that is not a database',
      check: 'database-integrity',
      break: ({ config, dir }) => {
        config.data.dir = join(dir, 'other');
        mkdirSync(config.data.dir);
        writeFileSync(join(config.data.dir, 'postrider.db'), 'x'.repeat(8192));
      },
      status: 'failure',
      reason: /SQLITE_NOTADB/,
    },
    {
      title: 'integrity check that does not end in time',
      check: 'database-integrity',
      integrityMs: 1,
      status: 'unknown',
      reason: /did not end in time: 0 of 0 tables/,
      fix: /--integrity-timeout/,
    },
    {
      title: 'huge write-ahead log',
      check: 'write-ahead-log',
      break: ({ config, dir }) => {
        // Sparse.
        config.data.dir = join(dir, 'other');
        mkdirSync(config.data.dir);
        const file = join(config.data.dir, 'postrider.db-wal');
        writeFileSync(file, '');
        truncateSync(file, 3 * 2 ** 30);
      },
      status: 'failure',
      subject: /postrider\.db-wal$/,
      reason: /The log has 3\.2 GB/,
      fix: /^fuser/,
    },
    {
      title: 'daemon whose API does not answer',
      check: 'daemon',
      break: ({ setDaemon }) =>
        setDaemon({ kind: 'unreachable', pid: 77, reason: '127.0.0.1:8080: ECONNREFUSED' }),
      status: 'failure',
      reason: /runs \(process 77\), but its API does not answer: 127\.0\.0\.1:8080: ECONNREFUSED/,
    },
    {
      title: 'failing readiness check',
      check: 'daemon',
      break: reporting({ checks: [{ check: 'queue', ok: false, message: 'the queue does not advance' }] }),
      status: 'failure',
      subject: 'readyz: queue',
      reason: /does not advance/,
      fix: /systemctl restart/,
    },
    {
      title: 'nearly full disk, which a restart does not help,',
      check: 'daemon',
      break: reporting({ checks: [{ check: 'sends', ok: false, message: 'the disk is nearly full' }] }),
      status: 'failure',
      subject: 'readyz: sends',
      reason: /nearly full/,
      fix: /^df -h(?!.*restart)/,
    },
    {
      title: 'outcomes that are not recorded, whose messages a restart would send again,',
      check: 'daemon',
      break: reporting({ checks: [{ check: 'outcomes', ok: false, message: 'outcomes are not recorded' }] }),
      status: 'failure',
      subject: 'readyz: outcomes',
      reason: /not recorded/,
      fix: /^(?!.*restart).*df -h/,
    },
    {
      title: 'failed backup',
      check: 'daemon',
      break: reporting({
        checks: [
          { check: 'backup', ok: true, details: { error: "EROFS: read-only file system, mkdir '/srv'" } },
        ],
      }),
      status: 'warning',
      subject: 'backup',
      reason: /^The last scheduled backup failed: EROFS/,
      fix: /ReadWritePaths=/,
    },
    {
      title: 'overdue backup',
      check: 'daemon',
      break: reporting({
        checks: [
          {
            check: 'backup',
            ok: false,
            message: 'the backup that was due at 2026-01-01T03:30:00.000Z has failed',
            details: { error: '/srv has 1 MB of free space, and a backup needs about 2 MB: free space' },
          },
        ],
      }),
      status: 'failure',
      subject: 'backup',
      reason: /^the backup that was due at \S+ has failed\. The last scheduled backup failed: \/srv has 1 MB/,
      fix: /^df -h$/,
    },
    {
      title: 'overdue backup without a path in its error',
      check: 'daemon',
      break: reporting({
        checks: [
          {
            check: 'backup',
            ok: false,
            message: 'the backup that was due at 2026-01-01T03:30:00.000Z has failed',
            details: { error: 'A system error occurred: uv_os_setpriority returned EPERM' },
          },
        ],
      }),
      status: 'failure',
      subject: 'backup',
      reason: /EPERM/,
      fix: /^journalctl -u postrider --grep backup/,
    },
    {
      title: 'overloaded event loop',
      check: 'daemon',
      break: reporting({ metrics: new Map([['nodejs_eventloop_lag_p99_seconds', 0.9]]) }),
      status: 'warning',
      subject: 'event loop',
      reason: /900 ms/,
    },
    {
      title: 'old message in the queue',
      check: 'queue',
      break: ({ tables }) => void enqueue(tables, NOW - 5 * HOUR),
      status: 'failure',
      subject: 'oldest message',
      reason: /ready for 5 hours and was not sent/,
      fix: /^postrider queue list$/,
    },
    {
      title: 'message that may wait for a warm-up',
      check: 'queue',
      break: ({ tables, config }) => {
        enqueue(tables, NOW - 5 * HOUR);
        config.delivery.egress = [WARMING_UP];
      },
      status: 'warning',
      subject: 'oldest message',
      reason: /it waits for the warm-up of a source address/,
      fix: /postrider warmup show/,
    },
    {
      title: 'source address that a provider refuses',
      check: 'egress-health',
      break: ({ tables, config }) => {
        config.delivery.egress = [WARMING_UP];
        tables.egressHealth.put({
          entry: 'new',
          provider: 'Microsoft',
          since: NOW - HOUR,
          probe_at: NOW + HOUR,
          failures: 2,
          passed: 0,
          blocked: 0,
          reply: '550 5.7.1 on our block list (S3150)',
        });
      },
      status: 'warning',
      subject: '192.0.2.7',
      reason: /Microsoft has refused this address since .*S3150/,
    },
    {
      title: 'warm-up that stepped back',
      check: 'egress-health',
      break: ({ tables, config, db }) => {
        config.delivery.egress = [WARMING_UP];
        const started = WARMING_UP.warmup.started;
        const row = {
          entry: 'new',
          provider: 'Yahoo',
          started,
          shift: 3,
          finished: 0,
          changed_at: NOW,
        } as const;
        tables.egressWarmup.put({ ...row, reason: '30 of 100 messages throttled or refused (limit 10 %)' });
        db.prepare("INSERT INTO egress_counts VALUES (?, 'new', 'Yahoo', 0, 100, 70, 30, 0, 0)").run(
          NOW - (NOW % DAY),
        );
      },
      status: 'warning',
      subject: '192.0.2.7',
      reason: /Its warm-up at Yahoo is on day 2: 30 of 100 messages throttled/,
      fix: /postrider warmup show new/,
    },
    {
      title: 'message that waits while the daemon is stopped',
      check: 'queue',
      break: ({ tables, setDaemon }) => {
        enqueue(tables, NOW - 20 * MINUTE);
        setDaemon({ kind: 'stopped' });
      },
      status: 'warning',
      reason: /20 minutes; the daemon is not running/,
    },
    {
      title: 'deferred message that is not attempted',
      check: 'queue',
      break: ({ tables }) => {
        const { seq } = enqueue(tables, NOW - HOUR);
        tables.queue.defer(seq, NOW - 30 * MINUTE);
      },
      status: 'failure',
      subject: 'deferred messages',
      reason: /due for 30 minutes without a new attempt/,
    },
    {
      title: 'full queue',
      check: 'queue',
      options: { settings: { 'limits.queuedMessages': 2 } },
      break: ({ tables }) => {
        for (let n = 0; n < 2; n++) enqueue(tables, NOW);
      },
      status: 'failure',
      subject: 'queue',
      reason: /2 messages, the limit/,
    },
    {
      title: 'parked domain',
      check: 'queue',
      break: reporting({
        checks: [
          {
            check: 'queue',
            ok: true,
            details: {
              parked: [{ kind: 'domain', id: 'domain_one', since: '', reason: 'the key cannot be opened' }],
            },
          },
        ],
      }),
      status: 'warning',
      subject: 'domain domain_one',
      reason: /cannot be prepared and waits: the key cannot be opened/,
      fix: /--domain domain_one$/,
    },
    {
      title: 'site with one connection for hours',
      check: 'queue',
      break: reporting({
        checks: [
          {
            check: 'queue',
            ok: true,
            details: { slowSites: [{ site: 'yahoo via default', since: '2026-11-22T09:00:00.000Z' }] },
          },
        ],
      }),
      status: 'warning',
      subject: 'site yahoo via default',
      reason: /asked to send less since 2026-11-22T09:00:00.000Z/,
      fix: /^postrider stats --by provider$/,
    },
    {
      title: 'mail that is stopped automatically',
      check: 'sending-limits',
      break: ({ tables }) => tables.sendingLimits.put(limitRow({ since: NOW - HOUR })),
      status: 'warning',
      subject: 'acct_one limit_1',
      reason:
        /^Marketing mail of the account is stopped: 7 % of 1000 messages bounced .* \(limit: 5 %\)\. Since 2026-11-22T11:00/,
      fix: /^Remove addresses .* postrider sending-limits resume limit_1 --reason …$/,
    },
    {
      title: 'campaign that was stopped automatically',
      check: 'sending-limits',
      break: ({ tables }) => {
        const figures = { messages: 310, events: 27, rate: 8.7, lowerBound: 6.4, limit: 5 };
        insertCampaignSend(
          tables,
          {
            id: 'campaign_1',
            status: 'paused',
            paused_reason: 'hard_bounces',
            paused_figures: JSON.stringify(figures),
          },
          NOW - HOUR,
        );
      },
      status: 'warning',
      subject: 'acct_one campaign_1',
      reason:
        /^The campaign Name of campaign_1 is stopped: 8\.7 % of 310 messages bounced .* Since 2026-11-22T11:00/,
      fix: /postrider campaign resume campaign_1 --account acct_one --reason …$/,
    },
    {
      title: 'failing webhook',
      check: 'webhooks',
      break: (setup) => insertWebhook(setup, { isActive: 1, offReason: null, since: NOW - HOUR }),
      status: 'warning',
      subject: 'webhook_one',
      reason: /https:\/\/shop\.example\/hooks have failed since 2026-11-22T11:00/,
      fix: /^postrider webhook deliveries webhook_one --account acct_one$/,
    },
    {
      title: 'webhook that the daemon disabled',
      check: 'webhooks',
      break: (setup) => insertWebhook(setup, { isActive: 0, offReason: 'failing', since: NOW - 4 * DAY }),
      status: 'failure',
      reason: /disabled the webhook/,
      fix: /webhook enable webhook_one --account acct_one$/,
    },
    {
      title: 'unrecorded results',
      check: 'background-work',
      break: reporting({ metrics: new Map([['postrider_delivery_unrecorded', 1]]) }),
      status: 'failure',
      subject: 'outcomes',
      reason: /cannot be recorded/,
    },
  ],
);
