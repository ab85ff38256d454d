import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import type { CertificateRow } from '../../../src/store/domains/certificates.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';
import { heldClock } from '../../support/store.ts';

/* Facts about an installation with backups, certificates and a warm-up. */
interface Facts {
  backups: Record<string, unknown> | null;
  certificates: { host: string; expiresAt: string | null; failures: number; lastError: string | null }[];
  egress: Record<string, unknown>[];
  warmup: { entry: string; provider: string; used: number; day: number; cap: number | null }[];
}

const TODAY = Date.UTC(2026, 11, 4);
const NOON = TODAY + DAY / 2;

let daemon: InProcess;
let client: ApiClient;
beforeAll(async () => {
  daemon = await startInProcess(
    {
      'backup.schedule': '30 3 1 1 *',
      'delivery.egress': [
        { name: 'main', publicAddress: '192.0.2.25', warmup: { started: '2026-12-01', days: 30 } },
        { name: 'spare', publicAddress: '192.0.2.26' },
      ],
    },
    { clock: heldClock(NOON) },
  );
  client = await daemon.account('Shop');
});
afterAll(() => daemon?.stop());

const facts = async () => (await client.get<Facts>('/web-setup/installation')).data;

function send(provider: string, marketing: number): void {
  const { egressCounts } = daemon.tables;
  egressCounts.add({ day: TODAY, entry: 'main', provider }, { marketing, delivered: marketing });
  egressCounts.endUnit(true);
  egressCounts.write();
}

const certificate = (host: string, more: Partial<CertificateRow>): CertificateRow => ({
  host,
  private_key: null,
  chain: null,
  not_after: null,
  due_at: NOON,
  tried_at: NOON,
  failures: 0,
  last_error: null,
  ...more,
});
const issued = (at: number) => ({
  private_key: Buffer.alloc(1),
  chain: 'pem',
  not_after: at,
  due_at: at - DAY,
});

describe('the facts about an installation', () => {
  it('have the time of the next backup before the first one', async () => {
    expect((await facts()).backups).toEqual({
      lastSuccessAt: null,
      nextAt: expect.stringMatching(/-01-01T|-12-31T/),
      error: null,
      isRunning: false,
    });
  });

  it('list hosts whose first certificate was not issued before those with one', async () => {
    const { certificates } = daemon.tables;
    certificates.put(certificate('later.example.com', issued(NOON + 60 * DAY)));
    certificates.put(certificate('soon.example.com', { ...issued(NOON + 9 * DAY), failures: 7 }));
    certificates.put(
      certificate('new.example.com', { failures: 2, last_error: 'no answer to the challenge' }),
    );
    expect((await facts()).certificates).toEqual([
      { host: 'new.example.com', expiresAt: null, failures: 2, lastError: 'no answer to the challenge' },
      { host: 'soon.example.com', expiresAt: '2026-12-13T12:00:00.000Z', failures: 7, lastError: null },
      { host: 'later.example.com', expiresAt: '2027-02-02T12:00:00.000Z', failures: 0, lastError: null },
    ]);
  });

  it('list at most 100 certificates, half of them not issued', async () => {
    const { certificates } = daemon.tables;
    for (let number = 0; number < 60; number++) {
      certificates.put(certificate(`new${number}.example.net`, { failures: 1 }));
      certificates.put(certificate(`old${number}.example.net`, issued(NOON + number * DAY)));
    }
    const listed = (await facts()).certificates;
    expect(listed).toHaveLength(100);
    expect(listed.filter(({ expiresAt }) => expiresAt === null)).toHaveLength(50);
  });

  it('state the warm-up of an address, its messages of today, and who refuses it', async () => {
    send('Google', 40);
    daemon.tables.egressHealth.put({
      entry: 'main',
      provider: 'Yahoo',
      since: NOON - DAY,
      probe_at: NOON + DAY,
      failures: 3,
      passed: 0,
      blocked: 0,
      reply: '553 5.7.1 [TSS09] refused',
    });
    const { egress, warmup } = await facts();
    expect(egress).toMatchObject([
      {
        entry: 'main',
        warmup: 'day 4 of 30',
        today: { sent: 40, delivered: 40, refused: 0 },
        refusedBy: [{ provider: 'Yahoo', failures: 3, reply: '553 5.7.1 [TSS09] refused' }],
      },
      { entry: 'spare', warmup: null, refusedBy: [] },
    ]);
    expect(warmup).toMatchObject([
      { entry: 'main', provider: 'Google', day: 4, cap: 400, used: 40, reason: null },
      { entry: 'main', provider: '*', day: 4, used: 0 },
    ]);
  });

  it('have the warm-up at no more than 200 providers, those with the most messages', async () => {
    for (let number = 1; number <= 250; number++) send(`provider${number}.example`, number);
    const rows = (await facts()).warmup;
    expect(rows).toHaveLength(201);
    expect(rows.at(-1)?.provider).toBe('*');
    expect(Math.min(...rows.slice(0, -1).map(({ used }) => used))).toBeGreaterThan(40);
    expect(rows.map(({ provider }) => provider)).toContain('provider250.example');
  });
});
