import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHECKS } from '../../src/doctor/checks.ts';
import type { Finding } from '../../src/doctor/finding.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { freePort } from '../support/free-port.ts';

/*
 * The built program: `postrider doctor` next to a running and after a killed daemon, and the operation for operators. Its
 * only DNS server knows no name of others, so nothing leaves the machine.
 */
let dns: DnsServer;
let daemon: RunningDaemon;

beforeAll(async () => {
  dns = await startDnsServer();
  daemon = await startDaemon({ 'dns.resolvers': [dns.address], 'dns.timeoutMs': 1000 });
});

afterAll(async () => {
  await daemon.stop();
  await dns.close();
});

interface Report {
  checkedAt: string;
  counts: Record<string, number>;
  findings: Finding[];
}

async function findings(...args: string[]): Promise<{ code: number; all: Finding[] }> {
  const { code, stdout } = await daemon.tryCli('doctor', '--json', ...args);
  return { code, all: JSON.parse(stdout) };
}

const statusOf = (all: readonly Finding[], check: string) =>
  all.filter((finding) => finding.check === check).map(({ status }) => status);

describe('postrider doctor', () => {
  it('has a finding of every check, and exits 3 with failures', async () => {
    const { code, all } = await findings();
    expect(code).toBe(3);
    expect(new Set(all.map(({ check }) => check))).toEqual(
      // There is no domain whose alignment could be examined.
      new Set(CHECKS.map(({ id }) => id).filter((id) => id !== 'dmarc-alignment')),
    );
    expect(statusOf(all, 'daemon')).toEqual(['ok']);
    expect(statusOf(all, 'database-integrity')).toEqual(['ok']);
    expect(all.find(({ check }) => check === 'reverse-dns')).toMatchObject({
      status: 'failure',
      subject: '192.0.2.25',
      fix: '25.2.0.192.in-addr.arpa. 3600 IN PTR mx.postrider.example.',
    });
  });

  it('prints plain text without a terminal: groups, the worst first, and a summary', async () => {
    const { code, stdout, stderr } = await daemon.tryCli('doctor');
    expect(code).toBe(3);
    expect(stderr).toBe('');
    expect(stdout).not.toContain('\u001b');
    expect(stdout).toMatch(/^Machine\n/);
    expect(stdout).toContain('  FAILURE  Reverse DNS: 192.0.2.25\n');
    expect(stdout).toContain('           fix: 25.2.0.192.in-addr.arpa. 3600 IN PTR mx.postrider.example.\n');
    expect(stdout.trim().split('\n').at(-1)).toMatch(
      /^\d+ failures, \d+ warnings?, \d+ unknown, \d+ ok \(\d+\.\d s\)$/,
    );
  });

  it('reports a domain that is not registered, and a usage error for what is not a domain', async () => {
    const { all } = await findings('--domain', 'other.example');
    expect(statusOf(all, 'domain-records')).toEqual(['failure']);
    expect(await daemon.tryCli('doctor', '--domain', 'not a domain')).toMatchObject({ code: 2, stdout: '' });
    expect(await daemon.tryCli('doctor', '--integrity-timeout', '0')).toMatchObject({ code: 2, stdout: '' });
  });

  it('reports a master key that others can read', async () => {
    const file = join(daemon.dataDir, 'master.key');
    chmodSync(file, 0o644);
    const { all } = await findings();
    chmodSync(file, 0o600);
    expect(all.filter(({ subject }) => subject === file)).toMatchObject([
      { status: 'failure', fix: `chmod 600 ${file}` },
    ]);
  });

  it('reports a daemon whose API is elsewhere as one that does not answer', async () => {
    const port = await freePort();
    const other = { POSTRIDER_API__LISTEN: `127.0.0.1:${port}` };
    const { code, stdout } = await daemon.tryCliWith(other, 'doctor', '--json');
    expect(code).toBe(3);
    const all: Finding[] = JSON.parse(stdout);
    expect(all.find(({ check }) => check === 'daemon')).toMatchObject({
      status: 'failure',
      reason: expect.stringMatching(
        /^The daemon runs \(process \d+\), but its API does not answer: .*ECONNREFUSED/,
      ),
    });
  });
});

describe('GET /web-setup/doctor', () => {
  it('requires a key that only the command line creates', async () => {
    const refused = await daemon.api.get('/web-setup/doctor');
    expect([refused.status, refused.error.code]).toEqual([403, 'INSUFFICIENT_SCOPE']);
    const headers = { 'X-Api-Key': await operatorKey() };
    const report = await daemon.api.call<Report>('GET', '/web-setup/doctor', { headers });
    expect(report.status).toBe(200);
    expect(report.data.findings.find(({ check }) => check === 'daemon')).toMatchObject({ status: 'ok' });
    expect(report.data.counts['failure']).toBeGreaterThan(0);
    const account = await daemon.api.call('GET', '/web-setup/account', { headers });
    expect(account.error.code).toBe('INSUFFICIENT_SCOPE');
  });

  it('runs once for concurrent and for repeated requests', async () => {
    const headers = { 'X-Api-Key': await operatorKey() };
    const request = () => daemon.api.call<Report>('GET', '/web-setup/doctor', { headers });
    const times = (await Promise.all([request(), request(), request()])).map(({ data }) => data.checkedAt);
    expect(new Set([...times, (await request()).data.checkedAt]).size).toBe(1);
  });
});

describe('postrider serve --check', () => {
  it('examines nothing while the daemon runs', async () => {
    const { code, stdout } = await daemon.tryCli('serve', '--check');
    expect([code, stdout]).toEqual([0, expect.stringMatching(/is running \(process \d+\)/)]);
  });
});

describe('without the daemon', () => {
  it('reports that it is not running, and skips the checks that need it', async () => {
    await daemon.kill('SIGKILL');
    const { code, all } = await findings();
    expect(code).toBe(3);
    expect(all.find(({ check }) => check === 'daemon')).toMatchObject({
      status: 'failure',
      reason: expect.stringContaining('is not running'),
    });
    expect(await daemon.tryCli('serve', '--check')).toMatchObject({ code: 0 });
    for (const check of ['listeners', 'background-work']) expect(statusOf(all, check)).toEqual(['unknown']);
    expect(statusOf(all, 'queue')).toEqual(['ok']);
    await daemon.restart();
  });
});

async function operatorKey(): Promise<string> {
  const created = await daemon.cli('key', 'create', '--account', daemon.api.accountId, '--scope', 'operator');
  const { key }: { key: string } = JSON.parse(created);
  return key;
}
