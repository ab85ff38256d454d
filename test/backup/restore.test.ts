import {
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createHeldExpiry, createHeldMail } from '../../src/backup/held.ts';
import { formatManifest, readManifest } from '../../src/backup/manifest.ts';
import { holdUnfinished, restoreBackup, restoreCopy } from '../../src/backup/restore.ts';
import { createExpiryClock } from '../../src/core/expiry-clock.ts';
import { createLog } from '../../src/core/log.ts';
import {
  ensureLocation,
  markAsCopy,
  recordIdentity,
  requireOriginal,
} from '../../src/store/backup/identity.ts';
import { lockDaemon } from '../../src/store/database/database.ts';
import { FINGERPRINT } from '../../src/store/master-key.ts';
import { HELD, HELD_BY_RESTORE } from '../../src/store/messages/queue.ts';
import type { Tables } from '../../src/store/tables.ts';
import type { NewWebhook } from '../../src/store/webhooks.ts';
import { enqueue } from '../support/store.ts';
import { openStore, startInstallation } from './setup.ts';

type Installation = Awaited<ReturnType<typeof startInstallation>>;

/** Writes what a daemon writes when it starts. */
async function begin({ writer, dir }: Installation): Promise<void> {
  const location = ensureLocation(dir);
  await writer.run((tx) => {
    recordIdentity(tx, location);
    tx.settings.raiseGeneration();
  });
}

/** Enqueues a message in each state that a queued message can have. Returns them by name. */
function fillQueue({ tables, clock }: Pick<Installation, 'tables' | 'clock'>) {
  const now = clock.now();
  const due = enqueue(tables, now);
  const scheduled = enqueue(tables, now, { dueAt: now + 3_600_000, priority: 1 });
  const sending = enqueue(tables, now);
  tables.queue.lease(sending.seq, 1);
  tables.messages.setState(sending.seq, 'sending', now, now, null);
  const paused = enqueue(tables, now);
  tables.queue.defer(paused.seq, HELD);
  return { due, scheduled, sending, paused };
}

const dueTimes = (tables: Tables, seqs: number[]) => seqs.map((seq) => tables.queue.get(seq)?.due_at);

describe('restoreBackup', () => {
  it('holds what was not finished, whatever its state, and takes over from the original', async () => {
    const installation = await startInstallation();
    await begin(installation);
    const { due, scheduled, sending, paused } = fillQueue(installation);
    const { path, manifest } = await installation.backup();
    expect(manifest).toMatchObject({ generation: 1, counts: { queued: 4 } });

    const target = installation.target();
    const restored = await restoreBackup(path, target);
    expect(restored).toMatchObject({
      isKeyMissing: false,
      held: { messages: 4, webhookDeliveries: 0, campaigns: 0, generation: installation.clock.now() },
    });
    const { tables } = openStore(target.dataDir);
    requireOriginal(tables, target.dataDir);
    expect(tables.settings.get('instance-id')).toBe(installation.tables.settings.get('instance-id'));
    const seqs = [due, scheduled, sending, paused].map(({ seq }) => seq);
    expect(dueTimes(tables, seqs)).toEqual(seqs.map(() => HELD_BY_RESTORE));
    expect(seqs.map((seq) => tables.messages.bySeq(seq)?.status)).toEqual(Array(4).fill('queued'));
    expect(tables.queue.promote(installation.clock.now() + 1e11, 10)).toEqual([]);
    expect(tables.restoreHolds.groups()).toEqual([
      expect.objectContaining({ account_id: 'acct_one', domain_id: 'domain_one', messages: 4 }),
    ]);
  });

  it('sends new messages as usual, with numbers that the original has not used', async () => {
    const installation = await startInstallation();
    const { path } = await installation.backup();
    const target = installation.target();
    await restoreBackup(path, target);
    const { tables } = openStore(target.dataDir);
    const after = enqueue(tables, installation.clock.now());
    expect(after.seq).toBeGreaterThan(1e9);
    expect(tables.queue.keyAfter(0, null)).toMatchObject({ destination: 'example.net' });
  });

  it('restores the files of the operator, and the master key if it is included', async () => {
    const installation = await startInstallation();
    mkdirSync(join(installation.dir, 'tls'));
    writeFileSync(join(installation.dir, 'tls/mx.pem'), 'certificate');
    const { path } = await installation.backup({ includeKey: true });
    const target = installation.target({ withKey: false });
    expect(await restoreBackup(path, target)).toMatchObject({ isKeyMissing: false });
    expect(readFileSync(join(target.dataDir, 'tls/mx.pem'), 'utf8')).toBe('certificate');
    expect(readFileSync(target.masterKeyFile)).toEqual(readFileSync(installation.config.data.masterKeyFile));
  });

  // Only root can give files away.
  it.runIf(process.getuid?.() === 0)('gives the files to the owner of the data directory', async () => {
    const installation = await startInstallation();
    const { path } = await installation.backup();
    const target = installation.target();
    chownSync(target.dataDir, 1234, 1235);
    await restoreBackup(path, target);
    const owners = readdirSync(target.dataDir).map((name) => statSync(join(target.dataDir, name)).uid);
    expect(new Set(owners)).toEqual(new Set([1234]));
  });

  it('reports a missing master key, and refuses that of another database', async () => {
    const installation = await startInstallation();
    const { path } = await installation.backup();
    const withoutKey = installation.target({ withKey: false });
    expect(await restoreBackup(path, withoutKey)).toMatchObject({ isKeyMissing: true });
    const wrong = { ...installation.target(), masterKeyFile: installation.otherKey() };
    await expect(restoreBackup(path, wrong)).rejects.toThrow('is not the master key of this backup');
    expect(existsSync(join(wrong.dataDir, 'postrider.db'))).toBe(false);
    copyFileSync(installation.config.data.masterKeyFile, `${wrong.masterKeyFile}.1`);
    await expect(restoreBackup(path, wrong)).rejects.toThrow(`copy ${wrong.masterKeyFile}.1 to`);
  });

  it('needs no master key for a database without secrets', async () => {
    const installation = await startInstallation();
    await installation.writer.run((tx) => tx.settings.remove(FINGERPRINT));
    const { path, manifest } = await installation.backup();
    expect(manifest.keyFingerprint).toBeNull();
    const target = installation.target({ withKey: false });
    expect(await restoreBackup(path, target)).toMatchObject({ isKeyMissing: false });
  });

  it('refuses to overwrite, a running daemon, another schema and a damaged backup', async () => {
    const installation = await startInstallation();
    const { path, manifest } = await installation.backup();
    const target = installation.target();
    const lock = lockDaemon(target.dataDir);
    await expect(restoreBackup(path, target)).rejects.toThrow('A daemon is running');
    lock.release();

    const file = join(path, 'manifest.json');
    writeFileSync(file, formatManifest({ ...manifest, schema: 9999, version: '9.0.0' }));
    await expect(restoreBackup(path, target)).rejects.toThrow('written by version 9.0.0');
    writeFileSync(file, JSON.stringify({ ...manifest, format: 1, schema: 52 }));
    await expect(restoreBackup(path, target)).rejects.toThrow(
      /development version of postrider before 0\.2\.0/,
    );
    writeFileSync(file, formatManifest(manifest));
    const copy = readFileSync(join(path, 'postrider.db'));
    const damaged = Buffer.from(copy);
    damaged.writeUInt8(damaged.readUInt8(5000) ^ 1, 5000);
    writeFileSync(join(path, 'postrider.db'), damaged);
    await expect(restoreBackup(path, target)).rejects.toThrow('its checksum does not match');
    expect(existsSync(join(target.dataDir, 'postrider.db'))).toBe(false);
    writeFileSync(join(path, 'postrider.db'), copy);

    await restoreBackup(path, target);
    await expect(restoreBackup(path, target)).rejects.toThrow('never overwrites a database');
    expect(await readManifest(path)).toEqual(manifest);
  });

  it('pauses campaigns that are being sent or scheduled, and states why', async () => {
    const installation = await startInstallation();
    const { tables, clock } = installation;
    const campaigns = (['sending', 'scheduled', 'sent'] as const).map((status, index) => {
      const seq = insertCampaign(tables, `campaign_${index}`, clock.now());
      tables.campaigns.setStatus(seq, status, clock.now());
      if (status === 'sent') {
        const send = tables.campaignSends.get(seq);
        if (send !== null) tables.campaignSends.update({ ...send, open: 0 });
      }
      return seq;
    });
    const { path } = await installation.backup();
    const target = installation.target();
    expect((await restoreBackup(path, target)).held.campaigns).toBe(2);
    const restored = openStore(target.dataDir).tables;
    const sends = campaigns.map((seq) => restored.campaignSends.get(seq));
    expect(sends.map((send) => send?.status)).toEqual(['paused', 'paused', 'sent']);
    expect(sends[0]?.paused_reason).toContain('restored from a backup');
    expect(sends[2]?.paused_reason).toBeNull();
  });
});

describe('webhook deliveries', () => {
  it('are held when they are not finished, and released or dropped by account', async () => {
    const installation = await startInstallation();
    const { tables, writer, clock, dir, recorder } = installation;
    const at = clock.now();
    for (let eventSeq = 1; eventSeq <= 6; eventSeq++)
      tables.webhookDeliveries.insert({
        webhook: eventSeq <= 4 ? 1 : 2,
        eventSeq,
        deliveryId: `d${eventSeq}`,
        at,
      });
    const outcome = {
      attempts: 1,
      failures: 1,
      attempted_at: at,
      response_code: 200,
      response_body: null,
      error: null,
    };
    const record = (eventSeq: number, state: 'succeeded' | 'failed' | 'waiting') =>
      tables.webhookDeliveries.record({
        webhook: 1,
        event_seq: eventSeq,
        state,
        due_at: at + 1000,
        ...outcome,
      });
    record(1, 'succeeded');
    record(2, 'failed');
    record(3, 'waiting');
    const options = { dataDir: dir, masterKeyFile: installation.config.data.masterKeyFile, clock };
    expect(await holdUnfinished(options)).toMatchObject({ webhookDeliveries: 4 });
    const states = () =>
      [1, 2, 3, 4, 5, 6].map((seq) => tables.webhookDeliveries.get(seq <= 4 ? 1 : 2, seq)?.state);
    expect(states()).toEqual(['succeeded', 'failed', 'waiting', 'waiting', 'waiting', 'waiting']);
    expect(tables.webhookDeliveries.promote(at + 1e11, 10)).toBe(0);
    expect(tables.restoreHolds.webhooks().map(({ webhook, deliveries }) => [webhook, deliveries])).toEqual([
      [1, 2],
      [2, 2],
    ]);
    const held = createHeldMail({ clock, tables, writer }, recorder);
    expect(await held.releaseWebhooks('acct_other')).toBe(0);
    const webhook: Omit<NewWebhook, 'webhook_id' | 'account_id' | 'created_at' | 'updated_at'> = {
      name: 'w',
      description: null,
      url: 'https://hook.example',
      events: '["*"]',
      format: 'postrider',
      filter: null,
      headers: null,
      is_active: 1,
      off_reason: null,
      failing_since: null,
    };
    tables.webhooks.insert({
      ...webhook,
      webhook_id: 'wh_1',
      account_id: 'acct_one',
      created_at: at,
      updated_at: at,
    });
    expect(await held.releaseWebhooks('acct_one')).toBe(2);
    expect(await held.dropWebhooks(null)).toBe(2);
    expect(states()).toEqual(['succeeded', 'failed', 'ready', 'ready', 'failed', 'failed']);
    expect(tables.restoreHolds.countDeliveries(10)).toBe(0);
  });
});

describe('a copy of the database', () => {
  it('is restored with its write-ahead log', async () => {
    const installation = await startInstallation();
    const { tables, clock, dir, db } = installation;
    await begin(installation);
    // A reader that holds the log: it is not copied into the file.
    db.exec('PRAGMA wal_autocheckpoint = 0');
    const message = enqueue(tables, clock.now());
    const elsewhere = installation.target().dataDir;
    for (const suffix of ['', '-wal'])
      writeFileSync(join(elsewhere, `replica.db${suffix}`), readFileSync(join(dir, `postrider.db${suffix}`)));
    const target = installation.target();
    const restored = await restoreCopy(join(elsewhere, 'replica.db'), target);
    expect(restored).toMatchObject({ manifest: null, held: { messages: 1 } });
    expect(openStore(target.dataDir).tables.queue.get(message.seq)?.due_at).toBe(HELD_BY_RESTORE);
  });

  it('is named in the error when it cannot be read', async () => {
    const installation = await startInstallation();
    const elsewhere = installation.target().dataDir;
    const replica = join(elsewhere, 'replica.db');
    writeFileSync(replica, readFileSync(join(installation.dir, 'postrider.db')));
    // SQLite cannot open the write-ahead log.
    mkdirSync(`${replica}-wal`);
    const target = installation.target();
    await expect(restoreCopy(replica, target)).rejects.toThrow(`${replica} cannot be read (`);
    expect(existsSync(join(target.dataDir, 'postrider.db'))).toBe(false);
  });

  it('is refused by a daemon until it was restored or its messages are held', async () => {
    const installation = await startInstallation();
    await begin(installation);
    enqueue(installation.tables, installation.clock.now());
    const { path } = await installation.backup();
    const target = installation.target();
    writeFileSync(join(target.dataDir, 'postrider.db'), readFileSync(join(path, 'postrider.db')));
    const refused = openStore(target.dataDir);
    expect(() => requireOriginal(refused.tables, target.dataDir)).toThrow('is a copy that was not restored');
    // As another program leaves it: without the mark.
    refused.tables.settings.remove('copy');
    expect(() => requireOriginal(refused.tables, target.dataDir)).toThrow(
      'copied from another data directory',
    );
    expect(await holdUnfinished(target)).toMatchObject({ messages: 1 });
    requireOriginal(refused.tables, target.dataDir);
  });

  it('stays refused when its restore is interrupted, and can be completed', async () => {
    const installation = await startInstallation();
    await begin(installation);
    const { tables, writer, dir, clock } = installation;
    enqueue(tables, clock.now());
    await writer.run(markAsCopy);
    expect(() => requireOriginal(tables, dir)).toThrow('postrider restore hold');
    const options = { dataDir: dir, masterKeyFile: installation.config.data.masterKeyFile, clock };
    expect(await holdUnfinished(options)).toMatchObject({ messages: 1 });
    requireOriginal(tables, dir);
    expect(tables.settings.generation()).toBe(clock.now());
  });

  it('is recognized when the location file is missing', async () => {
    const installation = await startInstallation();
    await begin(installation);
    requireOriginal(installation.tables, installation.dir);
    rmSync(join(installation.dir, 'location'));
    expect(() => requireOriginal(installation.tables, installation.dir)).toThrow('location does not match');
  });
});

describe('held mail', () => {
  async function startHeld() {
    const installation = await startInstallation();
    const { tables, writer, clock, dir, recorder } = installation;
    const messages = Array.from({ length: 5 }, () => enqueue(tables, clock.now()));
    const options = { dataDir: dir, masterKeyFile: installation.config.data.masterKeyFile, clock };
    await holdUnfinished(options);
    const deps = { clock, tables, writer, recorder };
    return { ...installation, messages, deps, held: createHeldMail(deps, deps.recorder) };
  }
  const first = (messages: { seq: number }[]) => messages[0]?.seq ?? 0;

  it('is released by id and by filter, once', async () => {
    const { held, messages, tables } = await startHeld();
    expect(await held.release({ seqs: [first(messages), first(messages)] })).toBe(1);
    expect(tables.queue.get(first(messages))).toMatchObject({ ready: 1 });
    expect(await held.release({ filter: { accountId: 'acct_other' } })).toBe(0);
    expect(await held.release({ filter: { accountId: 'acct_one', domainId: 'domain_one' } })).toBe(4);
    expect(await held.release({ filter: {} })).toBe(0);
    expect(tables.restoreHolds.count(100)).toBe(0);
  });

  it('is due when it was due before, and not before its paused campaign is resumed', async () => {
    const installation = await startInstallation();
    const { tables, writer, clock, dir, db, recorder } = installation;
    const now = clock.now();
    const { due, scheduled, paused } = fillQueue(installation);
    const campaign = insertCampaign(tables, 'campaign_paused', now);
    tables.campaigns.setStatus(campaign, 'paused', now);
    const ofCampaign = enqueue(tables, now, { priority: 1 });
    db.prepare('UPDATE queue SET campaign_seq = ? WHERE seq = ?').run(campaign, ofCampaign.seq);
    tables.queue.defer(ofCampaign.seq, HELD);
    // As of a disabled account: due at its expiry.
    const ofDisabled = enqueue(tables, now, { dueAt: now + 2 * 86_400_000 });
    db.prepare('UPDATE queue SET held = 1 WHERE seq = ?').run(ofDisabled.seq);
    const options = { dataDir: dir, masterKeyFile: installation.config.data.masterKeyFile, clock };
    await holdUnfinished(options);
    // As after an interruption.
    await holdUnfinished(options);
    clock.advance(60_000);
    const held = createHeldMail({ clock, tables, writer }, recorder);
    expect(await held.release({ filter: {} })).toBe(6);
    const state = ({ seq }: { seq: number }) => {
      const row = tables.queue.get(seq);
      return [row?.due_at, row?.ready];
    };
    expect(state(due)).toEqual([clock.now(), 1]);
    expect(state(ofDisabled)).toEqual([clock.now(), 1]);
    expect(state(scheduled)).toEqual([now + 3_600_000, 0]);
    expect(state(ofCampaign)).toEqual([HELD, 0]);
    // Its campaign is not paused (anymore).
    expect(state(paused)).toEqual([clock.now(), 1]);
  });

  it('is dropped with an event; what is not held is unchanged', async () => {
    const { held, messages, tables, clock } = await startHeld();
    const other = enqueue(tables, clock.now());
    expect(await held.drop({ seqs: [other.seq] })).toBe(0);
    expect(await held.drop({ filter: {} })).toBe(5);
    expect(tables.messages.bySeq(first(messages))?.status).toBe('cancelled');
    expect(tables.events.ofMessage(first(messages)).map(({ kind }) => kind)).toEqual(['email_failed']);
    expect(tables.queue.count()).toBe(1);
  });

  it('expires at the time of the message, with an event', async () => {
    const { deps, messages, tables, clock } = await startHeld();
    const log = createLog({ level: 'silent', hashAddresses: true });
    const expiry = createHeldExpiry({ ...deps, expiry: createExpiryClock(clock, clock), log }, deps.recorder);
    onTestFinished(expiry.stop);
    clock.advance(2 * 86_400_000);
    expiry.start();
    await expect.poll(() => expiry.counts().messages === 0 && tables.queue.count()).toBe(0);
    const [event] = tables.events.ofMessage(first(messages));
    expect(event).toMatchObject({ kind: 'email_failed' });
    expect(JSON.parse(event?.data ?? '')).toMatchObject({
      reason: 'expired',
      lastDiagnostic: expect.stringContaining('held since a restore'),
    });
  });
});

function insertCampaign(tables: Tables, id: string, now: number): number {
  const seq = tables.campaigns.insert({
    campaign_id: id,
    account_id: 'acct_one',
    name: id,
    description: null,
    prepared: null,
    status: 'draft',
    created_at: now,
    updated_at: now,
  });
  tables.campaignSends.insert(
    {
      campaign_seq: seq,
      account_id: 'acct_one',
      job_id: `job_${id}`,
      subscription_group_id: 'group_one',
      scheduled_at: null,
      per_hour: null,
      members: null,
      last_seq: null,
      at_seq: 0,
      queued: 0,
      without_email: 0,
      not_eligible: 0,
      not_renderable: 0,
      next_at: now,
      open: 1,
      audience: null,
      test: null,
      decide_at: null,
      decision: null,
      in_rest: 0,
      paused_reason: null,
      paused_figures: null,
      seen_counts: null,
      simulated: 0,
      started_at: null,
      finished_at: null,
      created_at: now,
    },
    '{}',
  );
  return seq;
}
