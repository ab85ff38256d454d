// Long: checks the database after a power failure at 140 moments of a run.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { createTables, type Tables } from '../../src/store/tables.ts';
import { dsn } from '../smtp/mx/mails.ts';
import { plain } from '../smtp/submission/setup.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { faultsInEvents } from '../support/ledger.ts';
import {
  type Entry,
  imagesOf,
  readRecord,
  recordFact,
  recordingEnvironment,
} from '../support/power-loss/images.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { seededNumbers } from '../support/seeded-numbers.ts';
import { smtpClient } from '../support/smtp-client.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import { startEndpoint } from '../support/webhook-endpoint.ts';

/*
 * A power failure at many moments of one run: what was not flushed to disk is lost, entirely or in parts.
 *
 *   clients ──HTTP, SMTP──▶ postrider ──SMTP──▶ sink ──DSN──▶ postrider ──webhook──▶ endpoint
 *      │                        │ writes and flushes of the database
 *      └──── facts ────▶ record ◀┘      record ──▶ database and log after a failure at any moment
 *
 * Each response, reply, read and webhook call is a fact that must hold in every image of a later moment.
 */
const required = requirePrograms('compiler');

const SENDS = 500;
const SUBMITTED = 60;
const BOUNCED = 60;
/** Images that are checked, of moments right after a fact, during a checkpoint, and any. */
const IMAGES = { fact: 60, checkpoint: 40, any: 40 };
/** Images from which the daemon continues to the end. */
const RESTARTS = 3;
const COMPLIANCE = '{{company_address_text}} {{unsubscribe_email_text}}';
const SEED = Number(process.env['POWER_LOSS_SEED'] ?? Date.now() % 2 ** 31);

type Fact =
  /** Accepted over HTTP with this idempotency key, or over SMTP without one. */
  | { kind: 'accepted'; messageId: string; key?: string }
  | { kind: 'read'; messageId: string; status: string }
  | { kind: 'bounced'; messageId: string }
  | { kind: 'notified'; messageId: string; eventId: string }
  | { kind: 'suppressed'; email: string }
  | { kind: 'contact'; email: string };

describe.skipIf(required.missing)(`a power failure${required.reason}`, () => {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-power-'));
  const dataDir = join(dir, 'data');
  const database = join(dataDir, 'postrider.db');
  const record = join(dir, 'record');
  const random = seededNumbers(SEED);
  let dns: DnsServer;
  let sink: Sink;
  let daemon: RunningDaemon;
  let mxPort: number;
  let submissionPort: number;

  beforeAll(async () => {
    mkdirSync(dataDir, { mode: 0o700 });
    mxPort = await freePort();
    submissionPort = await freePort();
    dns = await startDnsServer();
    sink = await startSink();
    daemon = await startDaemon(
      {
        'data.dir': dataDir,
        'dns.resolvers': [dns.address],
        'delivery.port': sink.port,
        'delivery.allowPrivateNetworks': true,
        'webhooks.allowPrivateNetworks': true,
        'mx.listen': `127.0.0.1:${mxPort}`,
        'submission.listen': `127.0.0.1:${submissionPort}`,
        'log.level': 'warn',
      },
      recordingEnvironment({ dir, record, database }),
    );
    publishMailHost(dns, 'empfang.example');
    await verifiedDomain(daemon, dns, 'kunde.example');
  });
  afterAll(async () => {
    await daemon?.stop();
    await sink?.close();
    await dns?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const state = (fact: Fact) => recordFact(record, fact);
  /** Ids of accepted messages by recipient. */
  const ids = new Map<string, string>();

  const sendAll = async (count: number, prefix: string) => {
    let next = 0;
    const sender = async () => {
      for (let n = next++; n < count; n = next++) {
        const key = `${prefix}${n}`;
        const mail = { ...SHORT_MAIL, from: 'a@kunde.example', to: `${key}@empfang.example` };
        const { messageId } = (await daemon.api.send(mail, { 'Idempotency-Key': key })).data;
        state({ kind: 'accepted', messageId, key });
        ids.set(mail.to, messageId);
      }
    };
    await Promise.all(Array.from({ length: 8 }, sender));
  };
  const submitAll = async () => {
    const client = await smtpClient(submissionPort);
    await client.say('EHLO app.example');
    const { accountId, keys } = daemon.api;
    expect(await client.say(plain(accountId, keys.transactional))).toMatch(/^235/);
    for (let n = 0; n < SUBMITTED; n++) {
      const to = `submitted${n}@empfang.example`;
      const mail = `From: a@kunde.example\r\nTo: ${to}\r\nSubject: Hello\r\n\r\nHello ${COMPLIANCE}\r\n`;
      const reply = await client.mail('a@kunde.example', to, mail);
      const messageId = /queued as (\S+)/.exec(reply)?.[1];
      if (messageId === undefined) throw new Error(reply);
      state({ kind: 'accepted', messageId });
      ids.set(to, messageId);
    }
    client.destroy();
  };
  const changeAll = async () => {
    for (let n = 0; n < SUBMITTED; n++) {
      const email = `person${n}@empfang.example`;
      const contact = await daemon.api.post('/web-setup/contacts', { email, consentMethod: 'double_opt_in' });
      expect(contact.status).toBeLessThan(300);
      state({ kind: 'contact', email });
      const suppression = await daemon.api.post('/web-setup/suppressions', { email });
      expect(suppression.status).toBeLessThan(300);
      state({ kind: 'suppressed', email });
    }
  };
  const readAll = async (signal: AbortSignal) => {
    const seen = new Set<string>();
    while (!signal.aborted)
      for (const { messageId, status } of await daemon.api.allMessages({ limit: '50' })) {
        if (status !== 'delivered' || seen.has(messageId)) continue;
        seen.add(messageId);
        state({ kind: 'read', messageId, status });
      }
  };
  /** Returns some of the delivered mails to their return path, as undeliverable. */
  const bounceSome = async () => {
    const client = await smtpClient(mxPort);
    await client.say('EHLO reporter.example');
    for (let n = 0; n < BOUNCED; n++) {
      const mail = await eventually(`mail ${n} at the sink`, () => sink.messages[n] ?? null);
      const recipient = mail.to[0] ?? '';
      const messageId = await eventually(`the response for ${recipient}`, () => ids.get(recipient) ?? null);
      expect(await client.mail('', mail.from, dsn({ recipient }))).toMatch(/^250/);
      state({ kind: 'bounced', messageId });
    }
    client.destroy();
  };

  it('loses nothing that was answered, read or notified before', async () => {
    const endpoint = await startEndpoint(({ json }) => {
      const { messageId } = json.data.object;
      if (typeof messageId === 'string') state({ kind: 'notified', messageId, eventId: json.id });
      return 200;
    });
    await daemon.api.post('/web-setup/webhooks', {
      url: endpoint.url,
      events: ['email_delivered', 'email_bounced'],
    });
    const reading = new AbortController();
    const reads = readAll(reading.signal);
    await Promise.all([sendAll(SENDS, 'first'), submitAll(), changeAll(), bounceSome()]);
    reading.abort();
    await reads;
    await daemon.kill('SIGKILL');

    const entries = readRecord(record);
    const accountId = daemon.api.accountId;
    const positions = entries.map((_, position) => position);
    const start = positions.findIndex((position) => entries[position]?.kind === 'fact');
    const after = positions.filter((position) => position > start);
    const pick = (from: readonly number[], count: number) =>
      Array.from({ length: count }, () => from[Math.floor(random() * from.length)] ?? start + 1);
    const cuts = [
      ...pick(
        after.filter((position) => entries[position - 1]?.kind === 'fact'),
        IMAGES.fact,
      ),
      ...pick(
        after.filter((position) => isInCheckpoint(entries[position])),
        IMAGES.checkpoint,
      ),
      ...pick(after, IMAGES.any),
    ];
    expect(after.some((position) => isInCheckpoint(entries[position]))).toBe(true);

    const imageDir = join(dir, 'image');
    mkdirSync(imageDir, { mode: 0o700 });
    let lossy = 0;
    let checked = 0;
    // From nothing of what was not flushed up to most of it.
    let share = 0;
    for (const image of imagesOf(entries, cuts, () => random() < share)) {
      if (image.unflushed > 0) lossy++;
      image.write(join(imageDir, 'postrider.db'));
      const facts = image.facts as Fact[];
      const db = openDatabase(imageDir);
      try {
        const context = `seed ${SEED}, cut ${image.cut} of ${entries.length}, share ${share}`;
        expect([context, db.pragma('integrity_check', { simple: true })]).toEqual([context, 'ok']);
        expect([context, untrueFacts(createTables(db), accountId, facts)]).toEqual([context, []]);
      } finally {
        db.close();
      }
      checked += facts.length;
      share = [0, 0.1, 0.5, 0.9][Math.floor(random() * 4)] ?? 0;
    }
    console.log(
      `${cuts.length} images of ${entries.length} writes and flushes, ${lossy} of them with lost writes: ` +
        `${checked} facts hold (POWER_LOSS_SEED=${SEED})`,
    );
    expect(lossy).toBeGreaterThan(IMAGES.checkpoint / 2);

    // The daemon continues from some of the images, and delivers everything that it had accepted.
    let isRunning = false;
    for (const image of imagesOf(entries, pick(cuts, RESTARTS), () => random() < 0.5)) {
      if (isRunning) await daemon.kill('SIGKILL');
      isRunning = true;
      image.write(database);
      await daemon.restart();
      await eventually(
        'the queue to be empty',
        async () => (await daemon.metric('postrider_queue_messages')) === 0,
        { everyMs: 100 },
      );
      const status = new Map((await daemon.api.allMessages()).map((each) => [each.messageId, each.status]));
      const facts = image.facts as Fact[];
      const undelivered = facts.flatMap((fact) =>
        fact.kind === 'accepted' && !['delivered', 'bounced'].includes(status.get(fact.messageId) ?? '')
          ? [fact.messageId]
          : [],
      );
      expect(undelivered).toEqual([]);
      expect(await faultsInEvents(daemon.api)).toEqual([]);
      for (const fact of facts.filter(({ kind }) => kind === 'accepted').slice(-5)) {
        if (fact.kind !== 'accepted' || fact.key === undefined) continue;
        const mail = { ...SHORT_MAIL, from: 'a@kunde.example', to: `${fact.key}@empfang.example` };
        const repeated = await daemon.api.send(mail, { 'Idempotency-Key': fact.key });
        expect(repeated.data.messageId).toBe(fact.messageId);
      }
    }
  });
});

/** What the image contradicts. */
function untrueFacts(tables: Tables, accountId: string, facts: readonly Fact[]): Fact[] {
  const page = { accountId, beforeSeq: null, limit: 10_000 };
  const suppressed = new Set(tables.suppressions.list(page).rows.map(({ email }) => email));
  const isTrue = (fact: Fact): boolean => {
    if (fact.kind === 'suppressed') return suppressed.has(fact.email);
    if (fact.kind === 'contact')
      return tables.contacts.byIdentifier(accountId, emailIdentifier(fact.email)) !== null;
    const message = tables.messages.byId(fact.messageId);
    if (message === null) return false;
    const events = tables.events.ofMessage(message.seq);
    if (fact.kind === 'read')
      // A later bounce changes the status.
      return message.status === fact.status || events.some(({ kind }) => kind === 'email_bounced');
    if (fact.kind === 'bounced') return events.filter(({ kind }) => kind === 'email_bounced').length === 1;
    if (fact.kind === 'notified') return events.some(({ event_id }) => event_id === fact.eventId);
    if (fact.key === undefined) return true;
    const answered = tables.idempotency.get(accountId, 'transactional/send', fact.key, 0);
    return answered?.body.includes(fact.messageId) ?? false;
  };
  return facts.filter((fact) => !isTrue(fact));
}

/** A checkpoint is in progress, or has just ended: pages are copied from the log into the database. */
function isInCheckpoint(entry: Entry | undefined): boolean {
  return entry?.kind === 'write' && entry.file === 'database';
}
