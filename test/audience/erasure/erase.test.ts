import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createErasure } from '../../../src/audience/erasure/erase.ts';
import { createErasers } from '../../../src/audience/erasure/erasers.ts';
import { DAY } from '../../../src/core/clock.ts';
import { withoutPause } from '../../../src/core/concurrency/slices.ts';
import { createLog } from '../../../src/core/log.ts';
import { presentEvent } from '../../../src/events/feed.ts';
import { presentMessage } from '../../../src/events/message-view.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import {
  packContent,
  packLongContent,
  readContent,
  writeDocumentInSteps,
} from '../../../src/mail/stored-content.ts';
import { ReadRejected } from '../../../src/store/database/failure.ts';
import { createLocalReader, type Reader } from '../../../src/store/readers/reads.ts';
import { storeMail } from '../../inbound/setup.ts';
import { exampleEvent } from '../../support/events.ts';
import { eventually } from '../../support/eventually.ts';
import { granted } from '../../support/refusal.ts';
import { contentOf, enqueue } from '../../support/store.ts';
import { CALLER, codeOf, startAudience } from '../setup.ts';

const ADA = 'Ada.Lovelace@example.net';
const ADA_ID = emailIdentifier(ADA);
const PHONE = '+442079460000';
/** What must be nowhere in the file, in any letters. */
const PERSONAL = [
  'ada.lovelace@example.net',
  'ada.lovelace%40example.net',
  '2079460000',
  'lovelace',
  'countess',
];

/** Makes a content long enough to be stored deflated. */
const ROWS = '<tr><td>One row of many</td></tr>'.repeat(50);

const WEBHOOK = {
  webhook_id: 'webhook_1',
  account_id: 'acct_one',
  name: 'All',
  description: null,
  url: 'http://127.0.0.1:9',
  events: '["*"]',
  format: 'postrider',
  filter: null,
  headers: null,
  is_active: 1,
  off_reason: null,
  failing_since: null,
  created_at: 1,
  updated_at: 1,
} as const;

async function startWithAda() {
  const setup = await startAudience();
  const { dir, db, tables, writer, clock, recorder } = setup;
  const contact = await setup.add(ADA, {
    phone: PHONE,
    firstName: 'Ada',
    lastName: 'Lovelace',
    customFields: { title: 'Countess' },
    consent: { method: 'web_form', details: 'Countess of Lovelace, on the phone' },
  });
  const store = (name: string) => readFileSync(join(dir, name), 'latin1').toLowerCase();
  return {
    ...setup,
    contact,
    erase: () => setup.erasure.erase('acct_one', ADA_ID),
    /** What is found of a person in all files of the database, and in contents, which may be deflated there. */
    traces: (needles = PERSONAL) => {
      const contents = db
        .prepare<[], number>('SELECT content_id FROM contents')
        .pluck()
        .all()
        .map((id) => JSON.stringify(readContent(tables.messages.content(id) ?? raise())).toLowerCase());
      const all = readdirSync(dir)
        .filter((name) => name.startsWith('postrider.db'))
        .map(store)
        .concat(contents)
        .join('');
      return needles.filter((needle) => all.includes(needle));
    },
    /** A message to some people, all with one content. */
    send: (to: string[], input: Parameters<typeof enqueue>[2] = {}) =>
      writer.run((tx) => {
        const boxes = to.map((address) => ({ name: 'Ada Lovelace', address }));
        const content = {
          from: { name: '', address: 'shop@example.com' },
          to: boxes,
          cc: [],
          subject: `For Ada Lovelace`,
          html: `<a href="https://x.org/?e=${encodeURIComponent(ADA)}">${ADA}</a>${ROWS}`,
          text: `Dear Ada Lovelace, ${PHONE}`,
          headers: [],
          attachments: [],
        };
        const content_id = tx.messages.insertContent(packContent(JSON.stringify(content)), clock.now());
        return to.map((recipient) =>
          enqueue(tx, clock.now(), { recipient, content_id, subject: content.subject, ...input }),
        );
      }),
    /** As if a worker had sent it and a server had refused it, quoting the address. */
    bounce: (seq: number) =>
      writer.run((tx) => {
        const message = () => tx.messages.bySeq(seq) ?? raise();
        recorder.message(tx, message(), exampleEvent('email_sent'));
        const text = `<${ADA}>: Recipient address rejected: Ada Lovelace is gone`;
        tx.messages.insertAttempt({
          message_seq: seq,
          attempt: 1,
          at: clock.now(),
          lane: 'primary',
          report: {
            reply: { code: 550, text },
            sessions: [{ startedAt: 1, endedAt: 2, reply: { text } }],
          },
        });
        recorder.message(tx, message(), exampleEvent('email_bounced', { diagnostic: text }));
      }),
    of: (seq: number) => tables.messages.bySeq(seq) ?? raise(),
  };
}

function raise(): never {
  throw new Error('the message is gone');
}

describe('an erasure', () => {
  it('removes received mail from the person, by its author and by its envelope, and its bytes', async () => {
    const setup = await startWithAda();
    const { db, tables, writer } = setup;
    const raw = `From: ${ADA}\r\n\r\nThe Countess of Lovelace${'.'.repeat(5000)}\r\n`;
    const parsed = (inboundId: string, from: string, text = raw) =>
      tables.inbound.setParsed({
        ...(tables.inbound.byId(inboundId) ?? raise()),
        from_address: from,
        content: JSON.stringify({ text }),
      });
    const kept = await writer.run(() => {
      parsed(storeMail(setup, { raw, sender: 'bounces@example.org' }), ADA.toLowerCase());
      parsed(storeMail(setup, { raw, sender: ADA.toLowerCase() }), 'list@example.org');
      const other = storeMail(setup, { sender: 'grace@example.org' });
      parsed(other, 'grace@example.org', '');
      return other;
    });
    expect(await setup.erase()).toEqual({ complete: true });
    expect(setup.traces()).toEqual([]);
    const ids = db.prepare<[], string>('SELECT inbound_id FROM inbound_mails').pluck();
    expect(ids.all()).toEqual([kept]);
    const parts = db.prepare<[], number>('SELECT count(*) FROM inbound_parts').pluck();
    expect(parts.get()).toBe(1);
  });

  it('is not complete while received mail waits for the parser, which may be from the person', async () => {
    const setup = await startWithAda();
    const { tables, writer } = setup;
    await writer.run(() => void storeMail(setup, { sender: 'list@example.org' }));
    expect(await setup.erase()).toEqual({ complete: false });
    expect(tables.erasures.pending()).toHaveLength(1);
  });

  it('leaves no data of the person in the file', async () => {
    const setup = await startWithAda();
    const { subscriptions, groupId, writer, tables, clock, recorder, send, bounce } = setup;
    granted(
      await subscriptions.add('acct_one', groupId, { email: ADA, consent: { details: 'Countess' } }, CALLER),
    );
    const [first] = await send([ADA]);
    await bounce(first?.seq ?? 0);
    await send([ADA], { priority: 1 });
    await writer.run((tx) => {
      const refused = {
        reasonCode: 'RECIPIENT_SUPPRESSED',
        reason: 'hard_bounce',
        recipient: ADA,
        contactIdentifier: ADA_ID,
        subject: 'Dear Countess',
      } as const;
      recorder.refusedSend(tx, { accountId: 'acct_one', domainId: null, fields: refused });
      tx.idempotency.insert(
        {
          account_id: 'acct_one',
          endpoint: 'transactional/send',
          key: 'k',
          fingerprint: Buffer.alloc(32),
          status: 200,
          body: JSON.stringify({ success: true, data: { recipients: [{ email: ADA }] } }),
          expires_at: clock.now() + 1000,
        },
        clock.now(),
      );
    });
    expect(setup.traces()).toEqual(PERSONAL);

    expect(await setup.erase()).toEqual({ complete: true });

    expect(setup.traces()).toEqual([]);
    expect(tables.erasures.pending()).toEqual([]);
    expect(codeOf(setup.contacts.get('acct_one', ADA_ID))).toBe('CONTACT_NOT_FOUND');
    expect(granted(setup.groups.get('acct_one', groupId)).total_subscribers).toBe(0);
    const answer = tables.idempotency.get('acct_one', 'transactional/send', 'k', clock.now());
    expect(JSON.parse(answer?.body ?? '')).toEqual({
      success: true,
      data: { recipients: [{ email: ADA_ID }] },
    });
  });

  it('keeps events and messages with the identifier only', async () => {
    const { send, bounce, erase, of, tables } = await startWithAda();
    const [message] = await send([ADA]);
    const seq = message?.seq ?? 0;
    await bounce(seq);
    await erase();
    expect(presentMessage({ ...of(seq), due_at: null, hold_reason: null, scheduled_at: null })).toMatchObject(
      {
        recipient: ADA_ID,
        subject: '',
        status: 'bounced',
      },
    );
    const { rows: events } = tables.events.feed({
      accountId: 'acct_one',
      recipientHash: ADA_ID,
      afterSeq: 0,
      limit: 10,
    });
    expect(events.map(presentEvent)).toMatchObject([
      { event: 'email_sent', recipient: ADA_ID, contactIdentifier: ADA_ID },
      {
        event: 'email_bounced',
        recipient: ADA_ID,
        smtpCode: 550,
        diagnostic: `<${ADA_ID}>: Recipient address rejected: [erased] is gone`,
      },
    ]);
    expect(JSON.parse(tables.messages.attemptsOf(seq)[0]?.report ?? '')).toMatchObject({
      reply: { code: 550 },
      sessions: [{ startedAt: 1 }],
    });
  });

  it('keeps suppressions and opt-outs by the identifier: they apply when the contact is created again', async () => {
    const { erase, suppress, tables, add, subscriptions, groupId, status } = await startWithAda();
    await suppress(ADA, 'hard_bounce');
    const at = { suppressed_at: 1, removed_at: 2 };
    const removal = {
      ...at,
      reason: 'manual',
      stream: 'all',
      note: 'Ada asked',
      removed_by: 'key_1',
    } as const;
    const [suppression] = tables.suppressions.of('acct_one', ADA_ID);
    if (suppression === undefined) throw new Error('no suppression');
    const { reason, stream, suppressed_at: created_at, removed_by: by, removed_at, note } = removal;
    tables.suppressionRemovals.record(
      { ...suppression, reason, stream, created_at },
      { note, by, at: removed_at },
    );
    granted(await subscriptions.put('acct_one', groupId, ADA_ID, { isActive: false }, CALLER));
    await erase();
    expect(tables.suppressions.of('acct_one', ADA_ID)).toMatchObject([
      { reason: 'hard_bounce', email: null },
    ]);
    expect(tables.suppressionRemovals.of('acct_one', ADA_ID)).toMatchObject([{ ...removal, note: null }]);
    await add(ADA);
    expect(status(ADA)).toBe('bounced');
    const back = granted(await subscriptions.add('acct_one', groupId, { email: ADA }, CALLER));
    expect(back.member.subscription.is_active).toBe(0);
  });

  it('applies to mail that returns later', async () => {
    const { send, erase, writer, recorder, of, tables } = await startWithAda();
    const [message] = await send([ADA]);
    const seq = message?.seq ?? 0;
    await writer.run((tx) => recorder.message(tx, of(seq), exampleEvent('email_sent')));
    await writer.run((tx) => recorder.message(tx, of(seq), exampleEvent('email_delivered')));
    await erase();
    await writer.run((tx) =>
      recorder.message(tx, of(seq), exampleEvent('email_complained', { source: 'arf' })),
    );
    expect(tables.suppressions.of('acct_one', ADA_ID)).toMatchObject([{ reason: 'complaint', email: null }]);
  });

  it('cancels queued mail with an event', async () => {
    const { send, erase, of, tables, clock } = await startWithAda();
    const [now] = await send([ADA]);
    const [later] = await send([ADA], { dueAt: clock.now() + 1000 });
    await erase();
    for (const message of [now, later]) {
      expect(of(message?.seq ?? 0).status).toBe('cancelled');
      expect(tables.queue.get(message?.seq ?? 0)).toBeNull();
    }
    const { rows: events } = tables.events.feed({ accountId: 'acct_one', afterSeq: 0, limit: 10 });
    expect(events.map(({ kind, data }) => [kind, JSON.parse(data)])).toEqual([
      ['email_failed', { reason: 'cancelled' }],
      ['email_failed', { reason: 'cancelled' }],
    ]);
  });

  it('keeps the mail of others without data of the person', async () => {
    const { send, erase, of, tables, traces } = await startWithAda();
    const [, bobs] = await send([ADA, 'bob@example.net']);
    await erase();
    expect(traces()).toEqual([]);
    const message = of(bobs?.seq ?? 0);
    expect(tables.messages.content(message.content_id)?.encoding).toBe('deflate');
    expect(message).toMatchObject({
      status: 'queued',
      recipient: 'bob@example.net',
      subject: 'For [erased]',
    });
    expect(contentOf(tables, message)).toMatchObject({
      to: [{ address: 'bob@example.net' }],
      subject: 'For [erased]',
      text: `Dear [erased], ${ADA_ID}`,
    });
  });

  it('clears received mail, clicked links and the responses of endpoints, and keeps the operator’s own mail', async () => {
    const { send, erase, traces, writer, tables, clock, of, recorder } = await startWithAda();
    await writer.run((tx) => {
      tx.campaigns.insert({
        campaign_id: 'campaign_1',
        account_id: 'acct_one',
        name: 'Spring',
        description: null,
        prepared: null,
        status: 'draft',
        created_at: 1,
        updated_at: 1,
      });
      for (const url of [`https://x.org/?e=${encodeURIComponent(ADA)}`, 'https://x.org/'])
        tx.campaignCounts.addClick('campaign_1', url);
      for (const [box, sender] of [
        ['bounce', ''],
        ['unsubscribe', ADA],
        ['unsubscribe', 'bob@example.net'],
        ['postmaster', 'someone@example.net'],
      ] as const) {
        const raw = Buffer.from(box === 'bounce' ? `To: <${ADA}>` : 'Hello');
        const mail = {
          kind: 'unknown',
          recipient: 'x@mx',
          remote_address: '192.0.2.1',
          network: '',
          message_seq: null,
        };
        tx.keptMail.insert({ ...mail, box, sender, raw, received_at: clock.now() });
      }
      tx.webhooks.insert(WEBHOOK);
    });
    const [message] = await send([ADA], { campaign_id: 'campaign_1' });
    const seq = message?.seq ?? 0;
    await writer.run((tx) => recorder.message(tx, of(seq), exampleEvent('email_sent')));
    const [due] = tables.webhookDeliveries.ready(1, 10);
    await writer.run((tx) => {
      if (due === undefined) throw new Error('no webhook delivery is due');
      const answered = { response_code: 500, response_body: `no such user ${ADA}`, error: null };
      tx.webhookDeliveries.record({ ...due, ...answered, state: 'waiting', attempted_at: 1 });
      recorder.message(tx, of(seq), exampleEvent('email_delivered'));
    });
    await erase();
    expect(traces()).toEqual([]);
    expect(tables.keptMail.list(null, 10).map(({ box, sender }) => `${box} ${sender}`)).toEqual([
      'postmaster someone@example.net',
      'unsubscribe bob@example.net',
    ]);
    expect(tables.campaignCounts.links('campaign_1', 10).map(({ url }) => url)).toEqual(['https://x.org/']);
    expect(tables.webhookDeliveries.get(1, due?.event_seq ?? 0)).toMatchObject({
      response_code: 500,
      response_body: null,
    });
  });

  it('keeps the reports of the operator, also of a reporter that an account names as a person', async () => {
    const { erase, tables, writer, clock } = await startWithAda();
    const boxes = ['dmarc', 'tlsrpt', 'feedback', 'bounce'] as const;
    await writer.run((tx) => {
      for (const box of boxes)
        tx.keptMail.insert({
          box,
          kind: 'unknown',
          recipient: 'x@mx',
          sender: ADA,
          remote_address: '192.0.2.1',
          network: '',
          message_seq: null,
          raw: Buffer.from('Hello'),
          received_at: clock.now(),
        });
    });
    await erase();
    expect(tables.keptMail.list(null, 10).map(({ box }) => box)).toEqual(['feedback', 'tlsrpt', 'dmarc']);
  });

  it.each<[string, { about: 'ours' | 'theirs' | null; sender?: string; raw: string }, boolean]>([
    [
      'clears kept mail about their message if it contains their name',
      { about: 'ours', raw: 'Hi\n\nAda Lovelace is away' },
      false,
    ],
    [
      'does not clear kept mail about their message if it names only others',
      { about: 'ours', raw: 'Hi\n\nBob is away' },
      true,
    ],
    [
      'clears kept mail without a message if they sent it',
      { about: null, sender: ADA, raw: 'Hi\n\n' },
      false,
    ],
    [
      'clears kept mail without a message if it was sent to them',
      { about: null, raw: `To: ${ADA}\n\nHello` },
      false,
    ],
    [
      'does not clear kept mail without a message if it contains their name',
      { about: null, raw: 'Hi\n\nAda Lovelace' },
      true,
    ],
    [
      'does not clear kept mail without a message if its text contains their address',
      { about: null, raw: `Hi\n\nof ${ADA}` },
      true,
    ],
    [
      'does not clear kept mail about a message of another account',
      { about: 'theirs', sender: ADA, raw: `To: ${ADA}\n\n` },
      true,
    ],
  ])('%s', async (_, { about, sender = '', raw }, stays) => {
    const { erase, send, tables, writer, clock } = await startWithAda();
    const [ours] = await send(['bob@example.net']);
    const theirs = enqueue(tables, clock.now(), { account_id: 'acct_two', recipient: ADA });
    const message_seq = about === null ? null : about === 'ours' ? (ours?.seq ?? 0) : theirs.seq;
    await writer.run((tx) => {
      const mail = {
        kind: 'unknown',
        recipient: 'x@mx',
        remote_address: '192.0.2.1',
        network: '',
        message_seq,
      };
      tx.keptMail.insert({
        ...mail,
        box: 'bounce',
        sender,
        raw: Buffer.from(raw),
        received_at: clock.now(),
      });
    });
    await erase();
    expect(tables.keptMail.list(null, 10)).toHaveLength(stays ? 1 : 0);
  });

  describe('of a person without a contact', () => {
    async function startWithoutContact() {
      const setup = await startAudience();
      const { writer, tables, recorder, clock, erasure } = setup;
      const message = await writer.run((tx) => {
        const sent = enqueue(tx, clock.now(), { recipient: ADA, subject: `For ${ADA}` });
        recorder.message(tx, sent, exampleEvent('email_clicked', { url: `https://x.org/?e=${ADA}` }));
        return sent;
      });
      return {
        ...setup,
        message,
        stored: () => ({
          message: tables.messages.bySeq(message.seq),
          events: tables.events.ofMessage(message.seq).map(presentEvent),
        }),
        erasePerson: (address: string | null, accountId = 'acct_one') =>
          erasure.erasePerson(accountId, ADA_ID, address),
      };
    }

    it.each([
      ['address', ADA],
      ['identifier', null],
    ])('clears messages and events by the %s', async (_, address) => {
      const { erasePerson, stored, erasure } = await startWithoutContact();
      expect(codeOf(await erasure.erase('acct_one', ADA_ID))).toBe('CONTACT_NOT_FOUND');
      expect(await erasePerson(address)).toEqual({ complete: true });
      const { message, events } = stored();
      expect(message).toMatchObject({ status: 'cancelled', recipient: ADA_ID, subject: '' });
      expect(events).toMatchObject([
        { event: 'email_clicked', url: `https://x.org/?e=${ADA_ID}` },
        { event: 'email_failed', reason: 'cancelled' },
      ]);
      expect(JSON.stringify(events)).not.toMatch(/userAgent|lovelace/i);
    });

    it('clears events without a message', async () => {
      const { erasePerson, writer, recorder, tables } = await startWithoutContact();
      const fields = {
        reasonCode: 'RECIPIENT_SUPPRESSED',
        reason: 'hard_bounce',
        recipient: ADA,
        contactIdentifier: ADA_ID,
      } as const;
      await writer.run((tx) => recorder.refusedSend(tx, { accountId: 'acct_two', domainId: null, fields }));
      expect(await erasePerson(ADA, 'acct_two')).toEqual({ complete: true });
      const { rows } = tables.events.feed({ accountId: 'acct_two', afterSeq: 0, limit: 10 });
      expect(rows.map(presentEvent)).toMatchObject([{ event: 'email_suppressed', recipient: ADA_ID }]);
    });

    it('is repeated for what was stored since the last one', async () => {
      const { erasePerson, writer, tables, clock } = await startWithoutContact();
      await erasePerson(ADA);
      const later = await writer.run((tx) => enqueue(tx, clock.now(), { recipient: ADA }));
      for (let time = 0; time < 2; time++) expect(await erasePerson(null)).toEqual({ complete: true });
      expect(tables.messages.bySeq(later.seq)?.recipient).toBe(ADA_ID);
    });

    it('is refused when nothing is stored', async () => {
      const { erasePerson, erasure } = await startWithoutContact();
      expect(codeOf(await erasePerson(ADA, 'acct_two'))).toBe('CONTACT_NOT_FOUND');
      expect(codeOf(await erasure.erasePerson('acct_one', 'phone_'.padEnd(38, '0'), null))).toBe(
        'CONTACT_NOT_FOUND',
      );
    });
  });

  it('waits for a mail that is being sent', async () => {
    const { send, erase, erasure, bounce, traces, writer, tables } = await startWithAda();
    const [message] = await send([ADA]);
    const seq = message?.seq ?? 0;
    await writer.run((tx) => tx.queue.lease(seq, 1));
    expect(await erase()).toEqual({ complete: false });
    expect(traces()).not.toEqual([]);
    await bounce(seq);
    erasure.start();
    await erasure.stop();
    expect(tables.erasures.pending()).toEqual([]);
    expect(traces()).toEqual([]);
    expect(tables.suppressions.of('acct_one', ADA_ID)).toMatchObject([
      { reason: 'hard_bounce', email: null },
    ]);
  });

  it('does not change other accounts, other people and later data', async () => {
    const { contacts, erase, send, clock, writer, of, add } = await startWithAda();
    granted(await contacts.create('acct_two', { email: ADA, lastName: 'Lovelace' }, CALLER));
    const [theirs] = await writer.run((tx) => [
      enqueue(tx, clock.now(), { account_id: 'acct_two', recipient: ADA, subject: 'Theirs' }),
    ]);
    await add('ada.lovelace@example.network');
    await erase();
    expect(granted(contacts.get('acct_two', ADA_ID)).last_name).toBe('Lovelace');
    expect(of(theirs?.seq ?? 0)).toMatchObject({ recipient: ADA, subject: 'Theirs', status: 'queued' });
    granted(contacts.get('acct_one', emailIdentifier('ada.lovelace@example.network')));
    const [after] = await send([ADA]);
    expect(of(after?.seq ?? 0)).toMatchObject({ recipient: ADA, status: 'queued' });
  });

  it('clears hundreds of messages, portion by portion', async () => {
    const { send, erase, traces, tables } = await startWithAda();
    for (let n = 0; n < 130; n++) await send([ADA]);
    expect(await erase()).toEqual({ complete: true });
    expect(traces()).toEqual([]);
    const { rows } = tables.messages.list({ accountId: 'acct_one', recipientHash: ADA_ID, limit: 500 });
    expect(rows.length).toBe(130);
  });

  it('continues after the end of the process between two portions, from its position', async () => {
    const { send, erase, erasure, tables, db, traces } = await startWithAda();
    const seqs = [];
    for (let n = 0; n < 40; n++) seqs.push(...(await send([ADA])).map(({ seq }) => seq));
    const thirtieth = seqs[29] ?? 0;
    db.exec(
      `CREATE TRIGGER crash BEFORE UPDATE ON messages WHEN new.subject = '' AND new.seq = ${thirtieth} BEGIN SELECT raise(ABORT, 'crash'); END`,
    );
    await expect(erase()).rejects.toThrow('crash');
    const at = tables.erasures.get(tables.erasures.pending()[0] ?? 0)?.at_message ?? 0;
    expect(at).toBeGreaterThan(0);
    expect(at).toBeLessThan(thirtieth);
    db.exec('DROP TRIGGER crash');
    // Processed rows are not read again.
    db.exec(
      `CREATE TRIGGER again BEFORE UPDATE ON messages WHEN new.seq <= ${at} BEGIN SELECT raise(ABORT, 'again'); END`,
    );
    erasure.start();
    await erasure.stop();
    expect(tables.erasures.pending()).toEqual([]);
    expect(traces()).toEqual([]);
  });

  it('completes the other erasures when one fails', async () => {
    const { send, erase, erasure, add, tables, db } = await startWithAda();
    const BOB = 'bob@example.net';
    await add(BOB);
    await send([ADA]);
    const [bobs] = await send([BOB]);
    db.exec(
      `CREATE TRIGGER broken BEFORE UPDATE ON messages WHEN new.subject = '' BEGIN SELECT raise(ABORT, 'broken'); END`,
    );
    await expect(erase()).rejects.toThrow('broken');
    await expect(erasure.erase('acct_one', emailIdentifier(BOB))).rejects.toThrow('broken');
    const [first] = tables.erasures.pending();
    db.exec('DROP TRIGGER broken');
    db.exec(
      `CREATE TRIGGER broken BEFORE UPDATE ON messages WHEN new.seq <> ${bobs?.seq} BEGIN SELECT raise(ABORT, 'broken'); END`,
    );
    erasure.start();
    await eventually('an erasure to be complete', () => tables.erasures.pending().length === 1);
    await erasure.stop();
    expect(tables.erasures.pending()).toEqual([first]);
  });

  it('does not delay a caller until unused space of a large file is cleared', async () => {
    const { send, tables, writer, clock, recorder } = await startWithAda();
    await send([ADA]);
    const gate = new BroadcastChannel('clearing');
    // A thread that starts on request.
    const slackScript = new URL(
      `data:text/javascript,${encodeURIComponent(`
        import { BroadcastChannel, parentPort } from 'node:worker_threads';
        const gate = new BroadcastChannel('clearing');
        const answers = { clear: { kind: 'cleared', pages: 0, next: null }, end: true };
        gate.onmessage = () => parentPort.postMessage(true);
        parentPort.on('message', ({ kind }) => {
          if (kind in answers) parentPort.postMessage(answers[kind]);
          else gate.postMessage('asked');
        });`)}`,
    );
    const asked = new Promise((resolve) => gate.addEventListener('message', resolve, { once: true }));
    const erasure = createErasure(
      { tables, writer, clock, log: createLog({ level: 'silent', hashAddresses: true }) },
      createErasers(createLocalReader(tables), recorder, DAY),
      { waitMs: 10_000, slackScript, smallFileBytes: 0 },
    );
    expect(await erasure.erase('acct_one', ADA_ID)).toEqual({ complete: true });
    expect(tables.erasures.pending()).toEqual([]);
    await asked;
    expect(erasure.isClearingFile()).toBe(true);
    gate.postMessage('go');
    await expect.poll(() => erasure.isClearingFile()).toBe(false);
    gate.close();
    await erasure.stop();
  });

  it('processes the copies of a shared content in portions', async () => {
    const { send, erase, traces, tables, of } = await startWithAda();
    const others = Array.from({ length: 400 }, (_, n) => `person${n}@example.net`);
    const messages = await send([...others.slice(0, 200), ADA, ...others.slice(200)]);
    const copies = vi.spyOn(tables.erasures, 'copiesAfter');
    expect(await erase()).toEqual({ complete: true });
    const portions = copies.mock.results.map(({ value }) => (value as unknown[]).length);
    expect(portions.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(401);
    expect(portions.length).toBeGreaterThan(4);
    expect(Math.max(...portions)).toBeLessThan(401);
    copies.mockRestore();
    expect(traces()).toEqual([]);
    expect(JSON.stringify(contentOf(tables, messages[0]))).toContain('person399@example.net');
    for (const { seq, recipient } of messages)
      if (recipient !== ADA)
        expect(of(seq)).toMatchObject({ recipient, subject: 'For [erased]', status: 'queued' });
  });

  describe('of a long content that is still to be sent to others', () => {
    const LONG = 'x'.repeat(200_000);
    /** The content as it is to remain, stored deflated. */
    async function startWithLong(
      query: (local: Reader['query'], change: (text: string) => Promise<void>) => Reader['query'] = (local) =>
        local,
    ) {
      const setup = await startWithAda();
      const { tables, writer, clock, recorder } = setup;
      const content = (text: string) => ({
        from: { name: '', address: 'shop@example.com' },
        to: [{ name: '', address: 'bob@example.net' }],
        cc: [],
        subject: 'Hello',
        html: LONG,
        text,
        headers: [],
        attachments: [],
      });
      const packed = (text: string) =>
        packLongContent({ document: withoutPause(writeDocumentInSteps(content(text))), isDeflated: true });
      const before = await packed(`Dear ${ADA}`);
      const [, bobs] = await writer.run((tx) => {
        const content_id = tx.messages.insertContent(before, clock.now());
        return [ADA, 'bob@example.net'].map((recipient) =>
          enqueue(tx, clock.now(), { recipient, content_id }),
        );
      });
      const message = setup.of(bobs?.seq ?? 0);
      const change = async (text: string) => {
        tables.erasures.setContent(message.content_id, await packed(text));
      };
      const local = createLocalReader(tables);
      const reader = { ...local, query: query(local.query, change) };
      const erasure = createErasure(
        { tables, writer, clock, log: createLog({ level: 'silent', hashAddresses: true }) },
        createErasers(reader, recorder, DAY),
        {},
      );
      return { ...setup, erasure, message };
    }

    it('rewrites it outside units of work', async () => {
      const { erasure, writer, tables, message, traces } = await startWithLong();
      let isInUnit = false;
      const run = writer.run.bind(writer);
      vi.spyOn(writer, 'run').mockImplementation((unit, share) =>
        run((tx) => {
          isInUnit = true;
          try {
            return unit(tx);
          } finally {
            isInUnit = false;
          }
        }, share),
      );
      const { parse } = JSON;
      let inside = 0;
      let outside = 0;
      const parsing = vi.spyOn(JSON, 'parse').mockImplementation((text, reviver) => {
        if (isInUnit) inside = Math.max(inside, text.length);
        else outside = Math.max(outside, text.length);
        return parse(text, reviver);
      });
      onTestFinished(() => parsing.mockRestore());
      expect(await erasure.erase('acct_one', ADA_ID)).toEqual({ complete: true });
      parsing.mockRestore();
      expect(inside).toBeLessThan(10_000);
      expect(outside).toBeGreaterThan(LONG.length);
      expect(traces()).toEqual([]);
      expect(tables.messages.content(message.content_id)?.encoding).toBe('deflate');
      expect(contentOf(tables, message)).toMatchObject({ html: LONG, text: `Dear ${ADA_ID}` });
    });

    it('rewrites it again when it has changed in the meantime', async () => {
      let queries = 0;
      const { erasure, tables, message, traces } = await startWithLong((local, change) => async (...args) => {
        const result = await local(...args);
        if (queries++ === 0) await change(`Dear ${ADA}, changed`);
        return result;
      });
      expect(await erasure.erase('acct_one', ADA_ID)).toEqual({ complete: true });
      expect(queries).toBe(2);
      expect(contentOf(tables, message)).toMatchObject({ text: `Dear ${ADA_ID}, changed` });
      expect(traces()).toEqual([]);
    });

    it('continues later when the reader threads are busy', async () => {
      let isBusy = true;
      const { erasure, tables, message } = await startWithLong((local) => async (...args) => {
        if (isBusy) throw new ReadRejected('busy', 'too many reads are waiting');
        return local(...args);
      });
      expect(await erasure.erase('acct_one', ADA_ID)).toEqual({ complete: false });
      expect(contentOf(tables, message)).toMatchObject({ text: `Dear ${ADA}` });
      isBusy = false;
      erasure.start();
      await erasure.stop();
      expect(tables.erasures.pending()).toEqual([]);
      expect(contentOf(tables, message)).toMatchObject({ text: `Dear ${ADA_ID}` });
    });
  });

  it('continues after a crash', async () => {
    const { send, erase, erasure, tables, db, traces } = await startWithAda();
    const [message] = await send([ADA]);
    db.exec(
      `CREATE TRIGGER crash BEFORE UPDATE ON messages WHEN new.subject = '' BEGIN SELECT raise(ABORT, 'crash'); END`,
    );
    await expect(erase()).rejects.toThrow('crash');
    expect(tables.erasures.pending()).toHaveLength(1);
    expect(tables.queue.get(message?.seq ?? 0)).toBeNull();
    db.exec('DROP TRIGGER crash');
    erasure.start();
    await erasure.stop();
    expect(tables.erasures.pending()).toEqual([]);
    expect(traces()).toEqual([]);
  });

  describe('clears copies in free space', () => {
    /** As page splits do: a row that is gone, and its bytes that are not. */
    function leaveTrace(db: Awaited<ReturnType<typeof startWithAda>>['db']): void {
      db.exec('PRAGMA secure_delete = OFF');
      db.exec('CREATE TABLE IF NOT EXISTS elsewhere (text TEXT) STRICT');
      for (const text of [ADA, 'kept']) db.prepare('INSERT INTO elsewhere VALUES (?)').run(text);
      db.exec("DELETE FROM elsewhere WHERE text <> 'kept'");
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      db.exec('PRAGMA secure_delete = ON');
    }
    const ADDRESS = ['ada.lovelace@example.net'];

    it('clears them in the file', async () => {
      const { db, erase, traces } = await startWithAda();
      leaveTrace(db);
      await erase();
      expect(traces()).toEqual([]);
    });

    it('clears them after each erasure', async () => {
      const { db, erase, traces, add } = await startWithAda();
      for (let n = 0; n < 2; n++) {
        leaveTrace(db);
        await erase();
        expect(traces(ADDRESS)).toEqual([]);
        await add(ADA);
      }
    });

    it('once an hour in a large file, for all erasures since', async () => {
      const { db, erase, erasure, traces, add, clock } = await startWithAda();
      db.exec(`CREATE TABLE filler AS SELECT zeroblob(${70 * 1024 * 1024}) AS zeros`);
      leaveTrace(db);
      await erase();
      expect(traces(ADDRESS)).toEqual([]);
      await add(ADA);
      leaveTrace(db);
      await erase();
      expect(traces(ADDRESS)).toEqual(ADDRESS);
      const sweep = async () => {
        erasure.start();
        await erasure.stop();
      };
      clock.advance(3_600_000);
      await sweep();
      expect(traces(ADDRESS)).toEqual([]);
    });

    it('clears them after a restart, when the process ended before', async () => {
      const { db, erase, erasure, traces, tables } = await startWithAda();
      leaveTrace(db);
      await erase();
      tables.settings.put('traces-cleared', '0');
      leaveTrace(db);
      expect(traces(ADDRESS)).toEqual(ADDRESS);
      erasure.start();
      await erasure.stop();
      expect(traces(ADDRESS)).toEqual([]);
    });
  });
});
