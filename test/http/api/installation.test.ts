import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../../support/api-client.ts';
import { type InProcess, PLATFORM, startInProcess } from '../../support/in-process-daemon.ts';

let daemon: InProcess;
let client: ApiClient;
beforeAll(async () => {
  daemon = await startInProcess();
  client = await daemon.account('Shop');
});
afterAll(() => daemon?.stop());

describe('the facts about an installation', () => {
  it('are versions, storage, source addresses, and no backups where none are scheduled', async () => {
    const { data } = await client.get<Record<string, unknown>>('/web-setup/installation');
    expect(data).toMatchObject({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      nodeVersion: process.version,
      hostname: PLATFORM,
      backups: null,
      certificates: [],
      egress: [{ entry: 'main', address: '192.0.2.25', pools: ['default'], warmup: null, refusedBy: [] }],
      warmup: [],
    });
    const { databaseBytes, freeBytes } = data['storage'] as { databaseBytes: number; freeBytes: number };
    expect(databaseBytes).toBeGreaterThan(4096);
    expect(freeBytes).toBeGreaterThan(0);
  });

  it('are for operators only', async () => {
    const headers = { 'X-Api-Key': client.keys.setup };
    const { status, error } = await client.call('GET', '/web-setup/installation', { headers });
    expect([status, error.code]).toEqual([403, 'INSUFFICIENT_SCOPE']);
  });
});

it('knows for which public.url the hosts of links are checked, from its start on', () => {
  expect(daemon.tables.settings.get('link-hosts-checked-for')).toBe('http:');
});
