import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { changeLimits } from '../../src/accounts/limits.ts';
import { MEMBER_BATCH_SIZE, paceOf } from '../../src/campaigns/batch.ts';
import { knownCustomFields } from '../../src/campaigns/fields.ts';
import { DAY, HOUR, iso, MINUTE } from '../../src/core/clock.ts';
import { refuse } from '../../src/core/refusal.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { stillAllowed } from '../../src/sending/still-allowed.ts';
import { HELD } from '../../src/store/messages/queue.ts';
import { eventually } from '../support/eventually.ts';
import { BODY, type CampaignSetting, granted, startCampaigns } from './setup.ts';

/** Inserts members, as an import does. */
async function addMembers(setting: CampaignSetting, count: number, fields = (_n: number): object => ({})) {
  const { tables, writer, ids, clock, groupId } = setting;
  const group = tables.subscriptionGroups.get('acct_one', groupId);
  if (group === null) throw new Error('no group');
  const now = clock.now();
  await writer.run((all) => {
    for (let n = 0; n < count; n++) {
      const email = `user${n}@d${n % 3}.example`;
      const seq = all.contacts.insert({
        account_id: 'acct_one',
        user_id: ids.uuid(),
        email,
        email_hash: emailIdentifier(email),
        phone: null,
        phone_hash: null,
        first_name: `User ${n}`,
        last_name: null,
        custom_fields: JSON.stringify(fields(n)),
        global_status: 'active',
        consent_n: 1,
        source: 'import',
        added_by: 'import',
        email_key: null,
        name_key: null,
        last_name_key: null,
        search_text: null,
        created_at: now,
        updated_at: now,
      });
      all.subscriptions.insert({
        group_seq: group.seq,
        contact_seq: seq,
        is_active: 1,
        source: 'import',
        consent_method: 'imported',
        consent_details: null,
        joined_at: now,
        updated_at: now,
      });
    }
  });
}

/** Messages of a campaign that may wait to be sent, in tests of this limit. */
const MAX_AHEAD = 400;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const queued = (setting: CampaignSetting, id: string, count: number) =>
  eventually(`${count} messages to be queued`, () => setting.progress(id).queued >= count, { everyMs: 5 });

describe('sending a campaign', () => {
  it('continues just ahead of delivery until each member has one message', async () => {
    const setting = await startCampaigns({}, { maxAhead: MAX_AHEAD });
    const { send, runner, progress, deliverAll, tables, until, messages } = setting;
    await addMembers(setting, 900);
    const row = granted(await send());
    runner.start();
    for (let round = 0; progress(row.campaign_id).queued < 900; round++) {
      await queued(
        setting,
        row.campaign_id,
        Math.min(900, (round + 1) * (MAX_AHEAD - MEMBER_BATCH_SIZE) + 1),
      );
      await pause(30);
      // The number of messages that are due is limited, whatever the number of members.
      expect(tables.queue.count()).toBeLessThanOrEqual(MAX_AHEAD);
      await deliverAll();
    }
    await deliverAll();
    await until(row.campaign_id, 'sent');
    const sent = messages(row);
    expect([sent.length, new Set(sent.map(({ recipient }) => recipient)).size]).toEqual([900, 900]);
    expect(progress(row.campaign_id)).toMatchObject({ members: 900, queued: 900 });
    expect(setting.tables.campaignSends.open()).toEqual([]);
  });

  it('continues after a restart from the last commit', async () => {
    const setting = await startCampaigns();
    const { send, progress, messages, tables } = setting;
    await addMembers(setting, 700);
    const row = granted(await send());
    let fail = true;
    const insert = tables.queue.insert;
    // A crash during a batch leaves nothing of it.
    tables.queue.insert = (entry) => {
      if (fail && tables.queue.count() === 260) throw new Error('power failure');
      insert(entry);
    };
    setting.runner.start();
    await queued(setting, row.campaign_id, 250);
    await pause(50);
    expect([progress(row.campaign_id).queued, messages(row).length]).toEqual([250, 250]);
    await setting.runner.stop();
    fail = false;
    const next = setting.anotherRunner();
    next.start();
    await queued(setting, row.campaign_id, 700);
    expect(new Set(messages(row).map(({ recipient }) => recipient)).size).toBe(700);
    expect(messages(row)).toHaveLength(700);
  });

  it('does not wait for a destination that is slow or down', async () => {
    const setting = await startCampaigns({}, { maxAhead: MAX_AHEAD });
    await addMembers(setting, 900);
    const row = granted(await setting.send());
    setting.runner.start();
    await queued(setting, row.campaign_id, MAX_AHEAD);
    await pause(150);
    expect(setting.progress(row.campaign_id).queued).toBe(MAX_AHEAD);
    setting.clock.advance(5 * MINUTE);
    await queued(setting, row.campaign_id, 2 * MAX_AHEAD);
  });

  it('alternates between campaigns of any size', async () => {
    const setting = await startCampaigns();
    await addMembers(setting, 1500);
    const small = await setting.makeGroup('Small');
    await setting.member('ada@example.net', {}, small);
    const large = granted(await setting.send());
    const little = granted(await setting.send({ subscriptionGroupId: small }));
    setting.runner.start();
    await queued(setting, little.campaign_id, 1);
    expect(setting.progress(large.campaign_id).queued).toBeLessThan(1500);
  });

  it('stops while the queue is full', async () => {
    const setting = await startCampaigns();
    await addMembers(setting, 10);
    const row = granted(await setting.send());
    setting.press(refuse('UNAVAILABLE', 'the disk is nearly full'));
    setting.runner.start();
    await pause(50);
    expect(setting.progress(row.campaign_id).queued).toBe(0);
    setting.press(null);
    setting.runner.wake();
    await queued(setting, row.campaign_id, 10);
  });

  it('skips members who were erased meanwhile and cancels their queued messages', async () => {
    const setting = await startCampaigns();
    const people = await Promise.all(['a', 'b', 'c'].map((name) => setting.member(`${name}@d0.example`)));
    const row = granted(await setting.send({ perHour: 1 }));
    setting.runner.start();
    await queued(setting, row.campaign_id, 1);
    for (const { email_hash } of people.slice(0, 2))
      granted(await setting.audience.erasure.erase('acct_one', email_hash ?? ''));
    setting.clock.advance(HOUR);
    setting.runner.wake();
    await queued(setting, row.campaign_id, 2);
    expect(setting.messages(row).map(({ recipient, status }) => [recipient, status])).toEqual([
      [people[0]?.email_hash, 'cancelled'],
      ['c@d0.example', 'queued'],
    ]);
  });

  it('skips members who joined after the start', async () => {
    const setting = await startCampaigns();
    await addMembers(setting, 10);
    const row = granted(await setting.send());
    await setting.member('late@example.net');
    setting.runner.start();
    await queued(setting, row.campaign_id, 10);
    await setting.deliverAll();
    await setting.until(row.campaign_id, 'sent');
    expect(setting.messages(row)).toHaveLength(10);
  });
});

describe('the queue', () => {
  it('never exceeds its limit, whatever the number of members and campaigns', async () => {
    const setting = await startCampaigns();
    await addMembers(setting, 200);
    setting.limitQueue(60);
    const first = granted(await setting.send());
    const second = granted(await setting.send());
    setting.runner.start();
    const both = () =>
      setting.progress(first.campaign_id).queued + setting.progress(second.campaign_id).queued;
    for (let sent = 0; sent < 400; sent = both()) {
      await eventually('the queue to be full', () => both() >= Math.min(400, sent + 60), { everyMs: 5 });
      await pause(20);
      expect(setting.tables.queue.count()).toBeLessThanOrEqual(60);
      await setting.deliverAll();
      setting.runner.wake();
    }
  });

  it.each([
    ['after the last member', true],
    ['before the last member', false],
  ])('releases held messages while it is full, %s', async (_, isComplete) => {
    const setting = await startCampaigns();
    const { sending, tables, writer } = setting;
    await addMembers(setting, isComplete ? 50 : 80);
    setting.limitQueue(50);
    const row = granted(await setting.send());
    setting.runner.start();
    await queued(setting, row.campaign_id, 50);
    granted(await sending.pause('acct_one', row.campaign_id));
    await writer.run((rows) => {
      for (const { seq } of setting.messages(row)) rows.queue.defer(seq, HELD);
    });
    setting.press(refuse('UNAVAILABLE', 'the queue holds 50 messages'));
    granted(await sending.resume('acct_one', row.campaign_id));
    await eventually('the mail to be due', () => !tables.campaignSends.anyHeld(row.seq));
    await setting.deliverAll();
    if (isComplete) await setting.until(row.campaign_id, 'sent');
    await pause(30);
    expect(setting.progress(row.campaign_id).queued).toBe(50);
  });
});

describe('a batch of a campaign', () => {
  const KB = 1024;
  const distinct = Array.from({ length: 2800 }, (_, n) => `{{customFields.none|${n}}}`).join('');

  async function batchSizesOf(slots: string, bio: string): Promise<number[]> {
    const setting = await startCampaigns();
    await addMembers(setting, 12, (n) => ({ bio, ...(n === 0 ? { none: '' } : {}) }));
    const row = granted(await setting.send({ html: `${BODY.html}{{customFields.bio}}${slots}` }));
    const sizes: number[] = [];
    const update = setting.tables.campaignSends.update;
    setting.tables.campaignSends.update = (send) => {
      sizes.push(send.queued - sizes.reduce((sum, one) => sum + one, 0));
      update(send);
    };
    setting.runner.start();
    await queued(setting, row.campaign_id, 12);
    expect(new Set(setting.messages(row).map(({ recipient }) => recipient)).size).toBe(12);
    expect(setting.messages(row)).toHaveLength(12);
    return sizes;
  }

  it.each([
    [
      'html with a raw variable, which is checked for each member',
      '',
      2,
      `{{{customFields.bio}}}${'x'.repeat(60 * KB)}`,
    ],
    ['long values', 'x'.repeat(60 * KB), 5, ''],
    ['many values', '', 7, distinct],
  ])('ends sooner with %s, and the campaign reaches each member once', async (_, bio, most, slots) => {
    expect(Math.max(...(await batchSizesOf(slots, bio)))).toBeLessThanOrEqual(most);
  });

  it('does not end sooner with a long template, which is rendered once', async () => {
    expect(Math.max(...(await batchSizesOf('x'.repeat(300 * KB), '')))).toBe(12);
  });

  it('ends sooner with messages that become too long', async () => {
    const setting = await startCampaigns();
    await addMembers(setting, 12, () => ({ bio: 'x'.repeat(60 * KB) }));
    const row = granted(await setting.send({ html: `${BODY.html}${'{{customFields.bio}}'.repeat(150)}` }));
    const skipped: number[] = [];
    const update = setting.tables.campaignSends.update;
    setting.tables.campaignSends.update = (send) => {
      skipped.push(send.not_renderable);
      update(send);
    };
    setting.runner.start();
    await setting.until(row.campaign_id, 'sent');
    expect([...new Set(skipped)]).toEqual([4, 8, 12]);
  });
});

describe('queued messages of a campaign', () => {
  /** Ten messages, of which one is deferred. */
  async function waiting() {
    const setting = await startCampaigns();
    await addMembers(setting, 10);
    const row = granted(await setting.send());
    setting.runner.start();
    await queued(setting, row.campaign_id, 10);
    const all = setting.messages(row);
    const [deferred] = all;
    if (deferred === undefined) throw new Error('no message');
    await setting.writer.run((tables) => {
      tables.messages.setState(deferred.seq, 'deferred', 1, null, null);
      tables.queue.defer(deferred.seq, setting.clock.now() + HOUR);
    });
    return { ...setting, row, all, deferred };
  }

  it('are held when it is paused and due when it is resumed, with a new expiry', async () => {
    const { sending, row, all, tables, clock, until, writer, deferred } = await waiting();
    granted(await sending.pause('acct_one', row.campaign_id));
    // As the scheduler does with messages that leave the queue.
    const due = all.filter(({ seq }) => seq !== deferred.seq);
    await writer.run((rows) => {
      for (const message of due) {
        expect(stillAllowed(rows, message)).toEqual({ kind: 'hold' });
        rows.queue.defer(message.seq, HELD);
      }
    });
    clock.advance(5 * DAY);
    granted(await sending.resume('acct_one', row.campaign_id));
    await eventually('the mail to be due', () => due.every(({ seq }) => tables.queue.get(seq)?.ready === 1));
    for (const { seq } of due) {
      expect(tables.queue.get(seq)?.due_at).toBe(clock.now());
      expect(tables.messages.bySeq(seq)).toMatchObject({ attempts: 0, expires_at: clock.now() + 4 * DAY });
    }
    // A deferred message keeps its due time.
    expect(tables.queue.get(deferred.seq)).toMatchObject({ ready: 0, due_at: clock.now() - 5 * DAY + HOUR });
    expect(stillAllowed(tables, deferred)).toBeNull();
    await until(row.campaign_id, 'sending');
  });

  it('are cancelled with it, also deferred ones', async () => {
    const { sending, row, all, tables, campaigns, writer } = await waiting();
    const [, leased] = all;
    if (leased === undefined) throw new Error('no message');
    await writer.run((rows) => rows.queue.lease(leased.seq, 1));
    granted(await sending.cancel('acct_one', row.campaign_id));
    expect(stillAllowed(tables, leased)).toEqual({ kind: 'email_failed', fields: { reason: 'cancelled' } });
    await eventually('the others to be cancelled', () => tables.queue.count() === 1);
    for (const { seq } of all.filter((message) => message !== leased)) {
      expect(tables.messages.bySeq(seq)?.status).toBe('cancelled');
      expect(tables.events.ofMessage(seq).map(({ kind, data }) => `${kind} ${data}`)).toEqual([
        'email_failed {"reason":"cancelled"}',
      ]);
    }
    // One is still being sent: its state depends on the campaign.
    expect(await campaigns.remove('acct_one', row.campaign_id)).toMatchObject({ code: 'INVALID_STATE' });
    await writer.run((rows) => rows.queue.release(leased.seq, 1));
    await eventually('the last to be cancelled', () => tables.campaignSends.open().length === 0);
    expect(tables.queue.count()).toBe(0);
    granted(await campaigns.remove('acct_one', row.campaign_id));
  });

  it('can be cancelled after the campaign is sent while messages are deferred', async () => {
    const { sending, row, tables, until, deliverAll, deferred } = await waiting();
    await deliverAll();
    await until(row.campaign_id, 'sent');
    expect(tables.queue.get(deferred.seq)).not.toBeNull();
    granted(await sending.cancel('acct_one', row.campaign_id));
    await eventually('it to be cancelled', () => tables.queue.count() === 0);
    expect(tables.messages.bySeq(deferred.seq)?.status).toBe('cancelled');
  });

  it('are sent when the campaign is deleted', async () => {
    const { row, tables, until, deliverAll, deferred, campaigns } = await waiting();
    await deliverAll();
    await until(row.campaign_id, 'sent');
    granted(await campaigns.remove('acct_one', row.campaign_id));
    expect(stillAllowed(tables, deferred)).toBeNull();
  });

  it('do not include messages that only name the campaign', async () => {
    const { sending, row, tables, all } = await waiting();
    granted(await sending.pause('acct_one', row.campaign_id));
    const [, message] = all;
    if (message === undefined) throw new Error('no message');
    expect(stillAllowed(tables, { ...message, job_id: 'job_1_other' })).toBeNull();
    expect(stillAllowed(tables, { ...message, job_id: null })).toBeNull();
  });
});

describe('a change during sending', () => {
  const domain = (setting: CampaignSetting, status: 'SUCCESS' | 'FAILED') =>
    setting.db.prepare('UPDATE domains SET status = ? WHERE domain_id = ?').run(status, 'domain_mk');
  const group = (setting: CampaignSetting, isActive: boolean) =>
    setting.audience.groups.update('acct_one', setting.groupId, { isActive });

  it.each<
    [
      what: string,
      code: string,
      (setting: CampaignSetting) => unknown,
      ((setting: CampaignSetting) => unknown) | null,
    ]
  >([
    ['the domain fails', 'DOMAIN_NOT_VERIFIED', (s) => domain(s, 'FAILED'), (s) => domain(s, 'SUCCESS')],
    ['the group becomes inactive', 'INVALID_STATE', (s) => group(s, false), (s) => group(s, true)],
    [
      'the group is deleted',
      'SUBSCRIPTION_GROUP_NOT_FOUND',
      (s) => s.audience.groups.remove('acct_one', s.groupId),
      null,
    ],
  ])('%s: pauses the campaign with a reason until it is corrected', async (_, code, damage, correct) => {
    const setting = await startCampaigns({}, { maxAhead: MAX_AHEAD });
    const { send, sending, runner, until, progress, clock } = setting;
    await addMembers(setting, MAX_AHEAD + 100);
    const row = granted(await send());
    const id = row.campaign_id;
    runner.start();
    await queued(setting, id, MAX_AHEAD);
    await damage(setting);
    // Messages that have waited for five minutes no longer count: the next batch is due.
    clock.advance(5 * MINUTE);
    await until(id, 'paused');
    expect(progress(id).pausedReason).toMatch(new RegExp(`^${code}: `));
    expect(await sending.resume('acct_one', id)).toMatchObject({ code });
    expect(progress(id)).toMatchObject({ queued: MAX_AHEAD, pausedReason: expect.any(String) });
    if (correct === null) {
      granted(await sending.cancel('acct_one', id));
      await eventually('its mail to be cancelled', () => setting.tables.queue.count() === 0);
      return;
    }
    await correct(setting);
    granted(await sending.resume('acct_one', id));
    await queued(setting, id, MAX_AHEAD + 100);
    expect(progress(id).pausedReason).toBeNull();
  });

  it('does not delay other campaigns when one fails', async () => {
    const setting = await startCampaigns();
    await addMembers(setting, 10);
    const broken = granted(await setting.send());
    setting.db.prepare('UPDATE campaign_mails SET mail = ?').run('{');
    const sound = granted(await setting.send());
    setting.runner.start();
    await queued(setting, sound.campaign_id, 10);
    expect(setting.campaign(broken.campaign_id).status).toBe('sending');
    expect(setting.progress(broken.campaign_id).queued).toBe(0);
  });
});

describe('a campaign with perHour', () => {
  it('sends evenly, also over a restart', async () => {
    const setting = await startCampaigns();
    await addMembers(setting, 30);
    const row = granted(await setting.send({ perHour: 480 }));
    setting.runner.start();
    // Two every fifteen seconds.
    const counts: number[] = [];
    for (let n = 0; n < 3; n++) {
      await queued(setting, row.campaign_id, 2 * (n + 1));
      await pause(20);
      counts.push(setting.progress(row.campaign_id).queued);
      setting.clock.advance(15_040);
      setting.runner.wake();
    }
    expect(counts).toEqual([2, 4, 6]);
    await setting.runner.stop();
    const before = setting.progress(row.campaign_id).queued;
    const next = setting.anotherRunner();
    next.start();
    await pause(30);
    expect(setting.progress(row.campaign_id).queued - before).toBeLessThanOrEqual(2);
  });

  it('never sends more than perHour in any period of an hour', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50_000 }),
        fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 0, max: 60_000 })), {
          minLength: 1,
          maxLength: 40,
        }),
        (perHour, script) => {
          const { batchSize, intervalMs } = paceOf(perHour);
          const sent: { at: number; count: number }[] = [];
          let at = 0;
          // Batches of any size, with any delay.
          for (let n = 0; at < 3 * HOUR; n++) {
            const [share, late] = script[n % script.length] ?? [1, 0];
            const count = Math.max(1, Math.ceil(batchSize * share));
            sent.push({ at, count });
            at += Math.ceil(count * intervalMs) + (n % 7 === 0 ? late : 0);
          }
          let sum = 0;
          let first = 0;
          for (const { at: end, count } of sent) {
            sum += count;
            while ((sent[first]?.at ?? 0) <= end - HOUR) sum -= sent[first++]?.count ?? 0;
            if (sum > perHour) return false;
          }
          return true;
        },
      ),
      { numRuns: 200 },
    );
  });

  it.each([1, 7, 100, 240, 1000, 20_000, 100_000])('comes close to the limit of %i an hour', (perHour) => {
    const { batchSize, intervalMs } = paceOf(perHour);
    const anHour = (HOUR / Math.ceil(batchSize * intervalMs)) * batchSize;
    expect(anHour).toBeLessThanOrEqual(perHour * 1.0001);
    expect(anHour).toBeGreaterThan(perHour * 0.99);
  });
});

describe('a custom field is known', () => {
  it('when any contact of the account has it', async () => {
    const setting = await startCampaigns();
    await addMembers(setting, 2500, (n) =>
      n === 2499 ? { rare: 1, nothing: null } : n % 2 === 0 ? { plan: 'x' } : {},
    );
    const names = [
      'customFields.plan',
      'customFields.rare.deep',
      'customFields.typo',
      'plan',
      'customFields',
      'customFields.',
    ];
    const known = (account: string) => knownCustomFields(setting.tables, account, names);
    expect([...(await known('acct_one'))]).toEqual(['customFields.plan', 'customFields.rare.deep']);
    expect([...(await known('acct_two'))]).toEqual([]);
  });

  it('by reading each batch of contacts once for all names', async () => {
    const setting = await startCampaigns();
    await addMembers(setting, 1000, () => ({ plan: 'x' }));
    const { campaignSends } = setting.tables;
    const fieldsAmong = campaignSends.fieldsAmong;
    const callsFor = async (count: number) => {
      let calls = 0;
      campaignSends.fieldsAmong = (...asked) => {
        calls++;
        return fieldsAmong(...asked);
      };
      const names = Array.from({ length: count }, (_, n) => `customFields.f${n}`);
      expect((await knownCustomFields(setting.tables, 'acct_one', names)).size).toBe(0);
      return calls;
    };
    expect(await callsFor(150)).toBe(await callsFor(1));
  });

  it('without blocking the event loop', async () => {
    const setting = await startCampaigns();
    await addMembers(setting, 1000);
    let turns = 0;
    let running = true;
    const count = () => {
      turns++;
      if (running) setImmediate(count);
    };
    setImmediate(count);
    await knownCustomFields(setting.tables, 'acct_one', ['customFields.typo']);
    running = false;
    expect(turns).toBeGreaterThanOrEqual(4);
  });
});

describe('campaigns of a disabled account', () => {
  const setStatus = ({ tables }: CampaignSetting, status: 'active' | 'disabled') => {
    const row = tables.accounts.get('acct_one');
    if (row === null) throw new Error('there is no account');
    tables.accounts.update({ ...row, status });
  };

  it('wait until it is enabled, without a change of their state', async () => {
    const setting = await startCampaigns();
    const { clock, runner, tables } = setting;
    await addMembers(setting, 300);
    const begun = granted(await setting.send());
    const planned = granted(await setting.send({ scheduledAt: iso(clock.now() + HOUR) }));
    runner.start();
    await queued(setting, begun.campaign_id, 100);
    setStatus(setting, 'disabled');
    const { queued: before } = setting.progress(begun.campaign_id);
    clock.advance(2 * HOUR);
    const looks = vi.spyOn(tables.accounts, 'get');
    // Each round reads the account of both campaigns.
    await eventually('three rounds', () => looks.mock.calls.length >= 6, { everyMs: 5 });
    expect(setting.progress(begun.campaign_id).queued - before).toBeLessThanOrEqual(100);
    expect(setting.campaign(begun.campaign_id)).toMatchObject({ status: 'sending' });
    expect(setting.campaign(planned.campaign_id)).toMatchObject({ status: 'scheduled' });
    setStatus(setting, 'active');
    await queued(setting, begun.campaign_id, 300);
    await queued(setting, planned.campaign_id, 300);
    await setting.deliverAll();
    await setting.until(begun.campaign_id, 'sent');
    await setting.until(planned.campaign_id, 'sent');
  });
});

describe("an account's message limits", () => {
  it('make a campaign wait until they permit more', async () => {
    const setting = await startCampaigns({ messagesPerHour: 30 });
    await addMembers(setting, 70);
    const row = granted(await setting.send());
    const sent = (count: number) =>
      eventually(`${count} messages`, () => (setting.messages(row).length === count ? true : null));
    setting.runner.start();
    await sent(30);
    await setting.deliverAll();
    setting.clock.advance(HOUR + 5 * MINUTE);
    await sent(60);
    expect(setting.campaign(row.campaign_id)).toMatchObject({ status: 'sending' });
    // A limit that the operator raises applies without a restart.
    await changeLimits(setting, 'acct_one', { messagesPerHour: null });
    await sent(70);
    await setting.deliverAll();
    await setting.until(row.campaign_id, 'sent');
    const addresses = setting.messages(row).map(({ recipient }) => recipient);
    expect(new Set(addresses).size).toBe(70);
  });

  it('roll back a batch that they refuse, which is repeated', async () => {
    const setting = await startCampaigns({ messagesPerHour: 30 });
    await addMembers(setting, 3);
    const refusing = vi
      .spyOn(setting.limits, 'takeMessages')
      .mockReturnValue(refuse('RATE_LIMITED', 'refused in a test'));
    const row = granted(await setting.send());
    setting.runner.start();
    await eventually('a refused batch', () => refusing.mock.calls.length > 0);
    expect(setting.messages(row)).toEqual([]);
    refusing.mockRestore();
    await eventually('the repeated batch', () => {
      setting.clock.advance(MINUTE);
      setting.runner.wake();
      return setting.progress(row.campaign_id).queued === 3;
    });
    expect(setting.messages(row)).toHaveLength(3);
    expect(setting.campaign(row.campaign_id)).toMatchObject({ status: 'sending' });
  });
});
