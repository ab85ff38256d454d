// Long: kills the daemon several times during an import of thousands of contacts.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { LONG_PATIENCE_MS } from '../support/patience.ts';

/* The daemon is killed three times while it imports contacts in the background, once right after the answer to the upload. */
const ROWS = 20_000;

interface Import {
  import: { importId: string; status: string; rows: number; created: number; updated: number };
}

let daemon: RunningDaemon;
beforeAll(async () => {
  daemon = await startDaemon({ 'log.level': 'warn' });
});
afterAll(() => daemon?.stop());

describe(`kill -9 during an import of ${ROWS} contacts`, () => {
  it('imports every row once', async () => {
    const { api } = daemon;
    const rows = Array.from({ length: ROWS }, (_, n) => `person${n}@example.net,Person ${n}\n`);
    const stored = await api.call<Import>('POST', '/web-setup/contacts/import?background=true', {
      rawBody: `email,firstName\n${rows.join('')}`,
      headers: { 'Content-Type': 'text/csv' },
    });
    expect(stored.status, stored.text).toBe(202);
    await daemon.kill('SIGKILL');
    await daemon.restart();
    const path = `/web-setup/contacts/imports/${stored.data.import.importId}`;
    const state = async () => (await daemon.api.get<Import>(path)).data.import;
    for (const at of [ROWS / 4, ROWS / 2]) {
      await eventually(`${at} rows`, async () => (await state()).rows >= at, {
        ms: LONG_PATIENCE_MS,
        everyMs: 25,
      });
      expect((await state()).status).toBe('running');
      await daemon.kill('SIGKILL');
      await daemon.restart();
    }
    await eventually('the end of the import', async () => (await state()).status === 'completed', {
      ms: LONG_PATIENCE_MS,
    });
    expect(await state()).toMatchObject({ rows: ROWS, created: ROWS, updated: 0 });
    const files = () => readdirSync(join(daemon.dataDir, 'imports'));
    await eventually('the file to be deleted', async () => files().length === 0);
  });
});
