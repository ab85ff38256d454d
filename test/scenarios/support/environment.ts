import { randomInt } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DAY } from '../../../src/core/clock.ts';
import { createLog } from '../../../src/core/log.ts';
import type { AccountRow } from '../../../src/store/accounts.ts';
import type { DomainStatus } from '../../../src/store/domains/domains.ts';
import type { ApiClient, CreatedDomain, DomainRecord, VerifiedDomain } from '../../support/api-client.ts';
import { createAuthority } from '../../support/certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';
import { type PolicyHost, startPolicyHost } from '../../support/policy-host.ts';
import { startSignedZones } from '../../support/signed-zones.ts';
import { createScenarioClock, type ScenarioClock } from './clock.ts';

/** Settings and servers of a family. */
export interface EnvironmentOptions {
  /** Settings with which the daemon starts. */
  settings?: Record<string, unknown>;
  /** Starts an HTTPS server for MTA-STS policies on port 443 of a loopback address, which requires root. */
  policyHost?: boolean;
  /** The lines of zones that Knot signs, by name. All queries go through a validating Unbound. */
  signedZones?: (env: Pick<Environment, 'port' | 'addressOf'> & { policyAddress: string }) => Zones;
  /** The zones of `signedZones` whose trust anchor is wrong. */
  bogusZones?: readonly string[];
  /** Activates the secondary lane of the transactional domain; `settings` has its source addresses or its relay. */
  secondaryLane?: boolean;
}

type Zones = Record<string, readonly string[]>;

/** The environment that the scenarios of a family share: one daemon, its clock, an account with two verified domains. */
export interface Environment extends Pick<ScenarioClock, 'clock' | 'advance'> {
  daemon: InProcess;
  /** Applies live settings in addition to those of the family, in place of the settings of the last call. */
  reload(changes?: Record<string, unknown>): Promise<void>;
  api: ApiClient;
  /** The port of all mail hosts. */
  port: number;
  /** The address of a mail host in 127.0.0.0/8, which no other host has. */
  addressOf(domain: string, label: string): string;
  /** Throws if the family has none. */
  policyHost(): PolicyHost;
  /** The subscription group of marketing mail. */
  groupId: string;
  /** Stores the status of the sending domain, as its verification would. */
  setDomainStatus(domain: keyof typeof SENDERS, status: DomainStatus): void;
  setAccountStatus(status: AccountRow['status']): void;
  /** The lines that the daemon has logged at level error. */
  errors: readonly Record<string, unknown>[];
  stop(): Promise<void>;
}

/** The daemon trusts certificates of this authority. Its key exists in memory only. */
export const AUTHORITY = createAuthority('Scenario authority');

/** The verified sending domains. */
export const SENDERS = { transactional: 'kunde.example', marketing: 'news.example' } as const;

/** Starts the daemon and the servers of a family, and verifies its sending domains. */
export async function startEnvironment(options: EnvironmentOptions = {}): Promise<Environment> {
  const { clock, monotonic, workerScript, advance } = createScenarioClock(AUTHORITY.cert);
  const errors: Record<string, unknown>[] = [];
  const reserved = await reservePort();
  const daemon = await startInProcess(
    {
      'delivery.port': reserved.port,
      'delivery.allowPrivateNetworks': true,
      // Long enough for a busy machine; a query that was not answered is sent again after a quarter of it.
      'dns.timeoutMs': 20_000,
      'log.level': 'error',
      ...(options.policyHost ? { 'delivery.tls.caFile': authorityFile() } : {}),
      ...options.settings,
    },
    {
      clock,
      monotonic,
      workerScript,
      log: createLog(
        { level: 'error', hashAddresses: false },
        { write: (line) => void errors.push(JSON.parse(line)) },
      ),
    },
  );
  const api = await daemon.account('Kunde');
  const addresses = new Map<string, string>();
  const addressOf = (domain: string, label: string): string => {
    const name = `${label}.${domain}`;
    const known = addresses.get(name) ?? addressNumber(addresses.size + 1);
    addresses.set(name, known);
    return known;
  };
  const policies = options.policyHost ? await startPolicyHost({ address: unusedAddress(), port: 443 }) : null;
  const { signedZones, bogusZones = [] } = options;
  const signed = signedZones
    ? await startSignedZones(
        daemon.dns.address,
        signedZones({ port: reserved.port, addressOf, policyAddress: policies?.address ?? '' }),
        { bogus: bogusZones },
      )
    : null;
  const resolvers = signed === null ? {} : { 'dns.resolvers': [signed.address] };
  const reload: Environment['reload'] = async (changes = {}) => {
    await daemon.reload({ ...resolvers, ...changes });
  };
  await reload();
  const domainIds = {
    transactional: await verify(daemon, api, SENDERS.transactional, 'tx-local'),
    marketing: await verify(daemon, api, SENDERS.marketing, 'mk-local'),
  };
  const { data } = await api.post<{ group: { subscriptionGroupId: string } }>(
    '/web-setup/contacts/subscription-groups',
    { name: 'Readers' },
  );
  if (options.secondaryLane) await activateSecondaryLane(daemon, api, domainIds.transactional);
  return {
    daemon,
    reload,
    api,
    clock,
    advance,
    errors,
    port: reserved.port,
    addressOf,
    policyHost: () => {
      if (policies === null) throw new Error('the family has no policy host');
      return policies;
    },
    groupId: data.group.subscriptionGroupId,
    setDomainStatus: (domain, status) => {
      const { domains } = daemon.tables;
      const row = domains.byId(domainIds[domain]);
      if (row === null) throw new Error(`${SENDERS[domain]} is not stored`);
      domains.update({ ...row, status });
    },
    setAccountStatus: (status) => {
      const { accounts } = daemon.tables;
      const row = accounts.get(api.accountId);
      if (row === null) throw new Error('the account is not stored');
      accounts.update({ ...row, status });
    },
    stop: async () => {
      await daemon.stop();
      await signed?.stop();
      await policies?.close();
      await reserved.release();
    },
  };
}

function addressNumber(number: number): string {
  return `127.80.${Math.floor(number / 250)}.${1 + (number % 250)}`;
}

/** The file is removed with the folder of the daemon's run: temporary-files.ts. */
function authorityFile(): string {
  const file = join(mkdtempSync(join(tmpdir(), 'postrider-authority-')), 'authority.pem');
  writeFileSync(file, AUTHORITY.cert);
  return file;
}

/** A loopback address for a server with a fixed port: its random bytes keep servers of parallel tests apart. */
function unusedAddress(): string {
  return `127.${randomInt(100, 255)}.${randomInt(255)}.7`;
}

/**
 * Reserves the port that all mail hosts use, each at its own address: a server listens on it at 127.0.0.1, so that other
 * programs do not get it as a free port.
 */
async function reservePort(): Promise<{ port: number; release(): Promise<void> }> {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the port was not reserved');
  return { port: address.port, release: () => new Promise((resolve) => server.close(() => resolve())) };
}

/** Registers and verifies a sending domain; returns its id. */
async function verify(daemon: InProcess, api: ApiClient, domain: string, useCaseId: string): Promise<string> {
  const { data } = await api.put<CreatedDomain>('/web-setup/domains', { domain, useCaseId });
  daemon.dns.publish(data.dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
  await daemon.publishPlatform();
  const path = `/web-setup/domains/${data.domainId}/verify`;
  const { data: verified } = await api.post<VerifiedDomain>(path);
  if (verified.status !== 'SUCCESS')
    throw new Error(`${domain} is not verified: ${JSON.stringify(verified.checks)}`);
  // Days pass within seconds: automatic verifications would only take time.
  const row = daemon.tables.domains.byId(data.domainId);
  if (row === null) throw new Error(`${domain} is not stored`);
  daemon.tables.domains.update({ ...row, next_check_at: row.next_check_at + 1000 * DAY });
  return data.domainId;
}

/** Publishes the record of the secondary lane as soon as its key exists, and verifies the domain. */
async function activateSecondaryLane(daemon: InProcess, api: ApiClient, domainId: string): Promise<void> {
  const path = `/web-setup/domains/${domainId}`;
  const record = await eventually('the record of the secondary lane', async () => {
    const { data } = await api.get<{ dnsRecords: DomainRecord[] }>(`${path}/dns-records`);
    const found = data.dnsRecords.find(({ purpose }) => purpose === 'Secondary DKIM');
    return found === undefined || found.value === 'Creation in progress' ? null : found;
  });
  daemon.dns.publish([record]);
  await daemon.publishPlatform();
  const { data } = await api.post<{ altStatus: string }>(`${path}/verify`);
  if (data.altStatus !== 'ACTIVE') throw new Error(`the secondary lane is ${data.altStatus}`);
}
