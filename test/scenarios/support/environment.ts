import { createServer } from 'node:net';
import { DAY } from '../../../src/core/clock.ts';
import { createLog } from '../../../src/core/log.ts';
import type { AccountRow } from '../../../src/store/accounts.ts';
import type { DomainStatus } from '../../../src/store/domains/domains.ts';
import type { ApiClient, CreatedDomain, VerifiedDomain } from '../../support/api-client.ts';
import { createAuthority } from '../../support/certificates.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';
import { createScenarioClock, type ScenarioClock } from './clock.ts';

/** What the scenarios of a family share: one daemon, its clock, and an account with two verified domains. */
export interface Environment extends Pick<ScenarioClock, 'clock' | 'advance'> {
  daemon: InProcess;
  api: ApiClient;
  /** The port of all mail hosts. */
  port: number;
  /** An address of 127.0.0.0/8 for another mail host. */
  newAddress(): string;
  /** The subscription group of marketing mail. */
  groupId: string;
  /** As if the verification of the sending domain had this result. */
  setDomainStatus(domain: keyof typeof SENDERS, status: DomainStatus): void;
  setAccountStatus(status: AccountRow['status']): void;
  /** What the daemon has logged at level error. */
  errors: readonly Record<string, unknown>[];
  stop(): Promise<void>;
}

/** Certificates of this authority are trusted by the daemon. Its keys exist in memory only. */
export const AUTHORITY = createAuthority('Scenario authority');

export const SENDERS = { transactional: 'kunde.example', marketing: 'news.example' } as const;

export async function startEnvironment(): Promise<Environment> {
  const { clock, monotonic, workerScript, advance } = createScenarioClock(AUTHORITY.cert);
  const errors: Record<string, unknown>[] = [];
  const reserved = await reservePort();
  const daemon = await startInProcess(
    {
      'delivery.port': reserved.port,
      'delivery.allowPrivateNetworks': true,
      // Not reached on a busy machine.
      'readers.budget': '60s',
      'log.level': 'error',
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
  const domainIds = {
    transactional: await verify(daemon, api, SENDERS.transactional, 'tx-local'),
    marketing: await verify(daemon, api, SENDERS.marketing, 'mk-local'),
  };
  const { data } = await api.post<{ group: { subscriptionGroupId: string } }>(
    '/web-setup/contacts/subscription-groups',
    { name: 'Readers' },
  );
  let addresses = 0;
  return {
    daemon,
    api,
    clock,
    advance,
    errors,
    port: reserved.port,
    newAddress: () => {
      addresses++;
      return `127.80.${Math.floor(addresses / 250)}.${1 + (addresses % 250)}`;
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
      await reserved.release();
    },
  };
}

/** All mail hosts use one port, each at its own address: it is reserved at 127.0.0.1, where nothing else listens. */
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
  // Days pass within seconds: none of the many automatic verifications is of interest.
  const row = daemon.tables.domains.byId(data.domainId);
  if (row === null) throw new Error(`${domain} is not stored`);
  daemon.tables.domains.update({ ...row, next_check_at: row.next_check_at + 1000 * DAY });
  return data.domainId;
}
