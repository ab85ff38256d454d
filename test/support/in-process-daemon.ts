import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKeys } from '../../src/accounts/keys.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import { type Clock, systemClock } from '../../src/core/clock.ts';
import { createIds } from '../../src/core/ids.ts';
import { createLog, type Log } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import type { DaemonEnv } from '../../src/daemon/context.ts';
import { startDaemon } from '../../src/daemon.ts';
import { createPeople } from '../../src/people/people.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { createWriter } from '../../src/store/database/writer.ts';
import { createTables } from '../../src/store/tables.ts';
import { type ApiClient, createApiClient } from './api-client.ts';
import { PATIENT_SETTINGS, variables } from './daemon.ts';
import { startDnsServer } from './dns-server.ts';
import { fixedKeys } from './rsa-keys.ts';

export const PLATFORM = 'mail.postrider.test';

export interface InProcessOptions extends Pick<DaemonEnv, 'fileSources'> {
  /** Default: the clocks of the system. */
  clock?: Clock;
  monotonic?: Clock;
  /** The program of the delivery workers. Default: the built one. */
  workerScript?: URL;
  /** Default: no log. */
  log?: Log;
}

/**
 * The whole daemon in this process, from its sources, with a programmable DNS server; nothing leaves the machine.
 * Tests write states that the API cannot produce quickly to the database through a second connection. `more`: further
 * settings by path.
 */
export async function startInProcess(more: Record<string, unknown> = {}, options: InProcessOptions = {}) {
  const { clock = systemClock } = options;
  const dir = mkdtempSync(join(tmpdir(), 'postrider-in-process-'));
  const dataDir = join(dir, 'data');
  const dns = await startDnsServer();
  const settings = {
    hostname: PLATFORM,
    'data.dir': dataDir,
    'api.listen': '127.0.0.1:0',
    // Tests set client addresses by X-Forwarded-For.
    'api.trustedProxies': ['127.0.0.1'],
    'public.listen': '127.0.0.1:0',
    'public.url': `http://track.${PLATFORM}`,
    'console.listen': 'off',
    'webhooks.allowPrivateNetworks': true,
    'mx.listen': 'off',
    'dns.resolvers': [dns.address],
    ...PATIENT_SETTINGS,
    'delivery.workers': 1,
    'limits.setupPerSecond': 10_000,
    'limits.setupBurst': 10_000,
    'limits.account.concurrentRequests': 1000,
    ...more,
  };
  const configWith = (changes: Record<string, unknown>): Config => {
    const config = loadConfig({ cwd: dir, env: variables({ ...settings, ...changes }) });
    // A documentation address, as behind NAT.
    if (config.delivery.egress.length === 0)
      config.delivery.egress = [{ name: 'main', publicAddress: '192.0.2.25', pools: ['default'] }];
    return config;
  };
  const daemon = await startDaemon(configWith({}), {
    clock,
    ...(options.monotonic === undefined ? {} : { monotonic: options.monotonic }),
    random: systemRandom,
    generateKey: fixedKeys(),
    log: options.log ?? createLog({ level: 'silent', hashAddresses: false }),
    ...(options.fileSources === undefined ? {} : { fileSources: options.fileSources }),
    ...(options.workerScript === undefined ? {} : { workerScript: options.workerScript }),
  });
  const db = openDatabase(dataDir);
  const tables = createTables(db);
  const writer = createWriter(db, tables);
  const keys = createKeys({ tables, writer, clock, ids: createIds(clock, systemRandom) });

  return {
    url: daemon.apiUrl,
    /** '' if `console.listen` is off, which is the default of tests. */
    consoleUrl: daemon.consoleUrl ?? '',
    dataDir,
    dns,
    tables,
    /** People of the console. */
    people: createPeople({ tables, writer, clock, ids: createIds(clock, systemRandom) }),
    /** Creates an account with a company address and an operator key; returns a client with its keys. */
    account: async (name: string): Promise<ApiClient> => {
      const companyAddress = { line1: '1 Main St', city: 'Town', postalCode: '12345', country: 'GB' };
      const created = await daemon.accounts.create({ name, companyName: `${name} Ltd`, companyAddress });
      if (isRefusal(created)) throw new Error(created.message);
      const { accountId } = created.account;
      const operator = await keys.create({ accountId, name: 'operator', scopes: ['operator'] });
      if (isRefusal(operator)) throw new Error(operator.message);
      return createApiClient(daemon.apiUrl, { accountId, keys: created.keys, operatorKey: operator.secret });
    },
    /** Publishes the platform's current DNS records, as its operator does. */
    publishPlatform: async () => {
      const records = await daemon.domains.zone();
      for (const { name } of records) dns.remove(name);
      dns.publish(records);
    },
    /** Applies live settings on top of those of the start; without any, the settings of the start apply again. */
    reload: (changes: Record<string, unknown> = {}) => daemon.reload(configWith(changes)),
    stop: async () => {
      await daemon.stop();
      await writer.close();
      db.close();
      await dns.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export type InProcess = Awaited<ReturnType<typeof startInProcess>>;
