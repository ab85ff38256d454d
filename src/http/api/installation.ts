import { stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import type { BackupSchedule } from '../../backup/schedule.ts';
import type { Config } from '../../config/schema.ts';
import { programVersion } from '../../config/version.ts';
import { iso, isoOrNull } from '../../core/clock.ts';
import { errorCode } from '../../core/errors.ts';
import { egressOverview, OTHER_PROVIDERS, type WarmupRow } from '../../delivery/egress-overview.ts';
import type { Context } from '../../store/context.ts';
import { DATABASE_FILE } from '../../store/database/connection.ts';
import type { Tables } from '../../store/tables.ts';
import { type Route, routesOf } from '../route.ts';

const route = routesOf({ tag: 'Installation', scope: 'operator' });

const MAX_CERTIFICATES = 100;
/** The part of MAX_CERTIFICATES for hosts whose first certificate was not issued. */
const MAX_UNISSUED = 50;
/** Warm-up rows of single providers in a response. */
const MAX_WARMUP_ROWS = 200;

const entry = z
  .object({
    entry: z.string(),
    address: z.string().describe('As receivers see it.'),
    address6: z.string().nullable(),
    hostname: z.string(),
    pools: z.array(z.string()),
    proxy: z.string().nullable(),
    warmup: z.string().nullable().describe('Such as `day 4 of 30` or `finished`; `null`: none.'),
    today: z
      .object({
        sent: z.int(),
        delivered: z.int(),
        throttled: z.int(),
        refused: z.int(),
        complained: z.int(),
      })
      .describe('Messages of today (UTC).'),
    refusedBy: z.array(
      z.object({
        provider: z.string(),
        since: z.string(),
        nextProbeAt: z.string(),
        failures: z.int(),
        reply: z.string(),
        blocked: z.boolean().describe('Mail that only this address can send waits.'),
      }),
    ),
  })
  .meta({ id: 'EgressAddress' });

const warmupRow = z
  .object({
    entry: z.string(),
    provider: z.string().describe('`*`: all providers without a row.'),
    day: z.int().describe('0: it has not begun.'),
    cap: z.int().nullable().describe('Messages of the day; `null`: unlimited.'),
    used: z.int(),
    throttled: z.int(),
    refused: z.int(),
    reason: z.string().nullable().describe('Why the day is not that of the calendar.'),
  })
  .meta({ id: 'EgressWarmup' });

export const installationSchema = z
  .object({
    version: z.string(),
    nodeVersion: z.string(),
    hostname: z.string(),
    startedAt: z.iso.datetime(),
    storage: z.object({
      databaseBytes: z.int(),
      logBytes: z.int().describe('The write-ahead log.'),
      freeBytes: z.int().describe('Of the file system with the database.'),
      minFreeBytes: z.int().describe('Below it new mail and data are refused: `limits.freeDiskBytes`.'),
    }),
    backups: z
      .object({
        lastSuccessAt: z.string().nullable(),
        nextAt: z.string(),
        error: z.string().nullable().describe('Why the last run failed.'),
        isRunning: z.boolean(),
      })
      .nullable()
      .describe('`null`: none are scheduled.'),
    certificates: z
      .array(
        z.object({
          host: z.string(),
          expiresAt: z.iso.datetime().nullable().describe('`null`: it was not issued yet.'),
          failures: z.int().describe('Failed attempts since the last success.'),
          lastError: z.string().nullable(),
        }),
      )
      .describe('At most 100: those not issued yet, then those that are renewed next.'),
    egress: z.array(entry).describe('Empty: the system chooses the source address.'),
    warmup: z
      .array(warmupRow)
      .describe('At most 200 of single providers, those with the most messages of the day.'),
  })
  .meta({ id: 'Installation' });

const EXAMPLE: z.output<typeof installationSchema> = {
  version: '1.0.0',
  nodeVersion: 'v22.20.0',
  hostname: 'mail.example.com',
  startedAt: '2026-01-31T12:00:00.000Z',
  storage: {
    databaseBytes: 52_428_800,
    logBytes: 4_194_304,
    freeBytes: 21_474_836_480,
    minFreeBytes: 536_870_912,
  },
  backups: {
    lastSuccessAt: '2026-01-31T03:00:00.000Z',
    nextAt: '2026-02-01T03:00:00.000Z',
    error: null,
    isRunning: false,
  },
  certificates: [
    { host: 'track.example.com', expiresAt: '2026-04-01T00:00:00.000Z', failures: 0, lastError: null },
  ],
  egress: [],
  warmup: [],
};

/** `/web-setup/installation`: facts about the running daemon, for its operator. */
export function installationRoutes(
  { config, clock, tables }: Pick<Context, 'config' | 'clock' | 'tables'>,
  // Null: no backups are scheduled.
  { backups }: { backups: Pick<BackupSchedule, 'status'> | null },
): Route[] {
  const startedAt = clock.now();
  return [
    route('GET /web-setup/installation', {
      operationId: 'getInstallation',
      summary: 'Get versions, storage, backups, certificates and source addresses',
      response: { description: 'The facts.', data: installationSchema, example: EXAMPLE },
      handle: async () => {
        const { entries, warmup } = egressOverview({ config, tables }, clock.now());
        return {
          version: programVersion(),
          nodeVersion: process.version,
          hostname: config.hostname,
          startedAt: iso(startedAt),
          storage: await storageIn(config),
          backups: backups?.status() ?? null,
          certificates: certificatesIn(tables),
          egress: entries,
          warmup: busiest(warmup).map(
            ({ entry: name, provider, day, cap, used, throttled, refused, reason }) => ({
              entry: name,
              provider,
              day,
              cap,
              used,
              throttled,
              refused,
              reason,
            }),
          ),
        };
      },
    }),
  ];
}

function certificatesIn({ certificates }: Tables): z.output<typeof installationSchema>['certificates'] {
  const unissued = certificates.unissued(MAX_UNISSUED);
  return [...unissued, ...certificates.soonestDue(MAX_CERTIFICATES - unissued.length)].map(
    ({ host, not_after, failures, last_error }) => ({
      host,
      expiresAt: isoOrNull(not_after),
      failures,
      lastError: last_error,
    }),
  );
}

/** The providers with the most messages of today, and the row of all others of each address; in the given order. */
function busiest(rows: readonly WarmupRow[]): WarmupRow[] {
  const single = rows.filter(({ provider }) => provider !== OTHER_PROVIDERS);
  const kept = new Set(single.toSorted((a, b) => b.used - a.used).slice(0, MAX_WARMUP_ROWS));
  return rows.filter((row) => row.provider === OTHER_PROVIDERS || kept.has(row));
}

async function storageIn({
  data: { dir },
  limits,
}: Config): Promise<z.output<typeof installationSchema>['storage']> {
  const file = join(dir, DATABASE_FILE);
  const { bavail, bsize } = await statfs(dir);
  return {
    databaseBytes: await sizeOf(file),
    logBytes: await sizeOf(`${file}-wal`),
    freeBytes: bavail * bsize,
    minFreeBytes: limits.freeDiskBytes,
  };
}

/** 0: there is no such file, as of a log before the first write. */
async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return 0;
    throw error;
  }
}
