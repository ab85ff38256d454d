import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { changeLimits } from '../../src/accounts/limits.ts';
import { createContactFieldNames } from '../../src/campaigns/fields.ts';
import { MEMBER_BATCH_SIZE, paceOf } from '../../src/campaigns/run.ts';
import { DAY, HOUR, iso, MINUTE } from '../../src/core/clock.ts';
import { refuse } from '../../src/core/refusal.ts';
import { sendingObstacle } from '../../src/sending/checks.ts';
import { HELD } from '../../src/store/messages/queue.ts';
import { createLocalReader, type Reader } from '../../src/store/readers/reads.ts';
import { eventually } from '../support/eventually.ts';
import { granted } from '../support/refusal.ts';
import { addMembers, BODY, type CampaignSetup, startCampaigns } from './setup.ts';

/** Messages of a campaign that may wait to be sent, in tests of this limit. */
const MAX_AHEAD = 400;

const queued = (setup: CampaignSetup, id: string, count: number) =>
  eventually(`${count} messages to be queued`, () => setup.progress(id).queued >= count, { everyMs: 5 });

describe('sending a campaign', () => {
  it('continues just ahead of delivery until each member has one message', async () => {
    const setup = await startCampaigns({}, { maxAhead: MAX_AHEAD });
    const { send, runner, progress, deliverAll, tables, until, messages } = setup;
    await addMembers(setup, 900);
    const row = granted(await send());
    runner.start();
    for (let round = 0; progress(row.campaign_id).queued < 900; round++) {
      await queued(setup, row.campaign_id, Math.min(900, (round + 1) * (MAX_AHEAD - MEMBER_BATCH_SIZE) + 1));
      await setup.severalRounds();
      // The number of messages that are due is limited, whatever the number of members.
      expect(tables.queue.count()).toBeLessThanOrEqual(MAX_AHEAD);
      await deliverAll();
    }
    await deliverAll();
    await until(row.campaign_id, 'sent');
    const sent = messages(row);
    expect([sent.length, new Set(sent.map(({ recipient }) => recipient)).size]).toEqual([900, 900]);
    expect(progress(row.campaign_id)).toMatchObject({ members: 900, queued: 900 });
    expect(setup.tables.campaignSends.open()).toEqual([]);
  });

  it('continues after a restart from the last commit', async () => {
    const setup = await startCampaigns();
    const { send, progress, messages, tables } = setup;
    await addMembers(setup, 700);
    const row = granted(await send());
    let fail = true;
    const insert = tables.queue.insert;
    // A crash during a batch leaves nothing of it.
    tables.queue.insert = (entry) => {
      if (fail && tables.queue.count() === 260) throw new Error('power failure');
      insert(entry);
    };
    setup.runner.start();
    await queued(setup, row.campaign_id, 250);
    await setup.severalRounds();
    expect([progress(row.campaign_id).queued, messages(row).length]).toEqual([250, 250]);
    await setup.runner.stop();
    fail = false;
    const next = setup.anotherRunner();
    next.start();
    await queued(setup, row.campaign_id, 700);
    expect(new Set(messages(row).map(({ recipient }) => recipient)).size).toBe(700);
    expect(messages(row)).toHaveLength(700);
  });

  it('does not wait for a destination that is slow or down', async () => {
    const setup = await startCampaigns({}, { maxAhead: MAX_AHEAD });
    await addMembers(setup, 900);
    const row = granted(await setup.send());
    setup.runner.start();
    await queued(setup, row.campaign_id, MAX_AHEAD);
    await setup.severalRounds();
    expect(setup.progress(row.campaign_id).queued).toBe(MAX_AHEAD);
    setup.clock.advance(5 * MINUTE);
    await queued(setup, row.campaign_id, 2 * MAX_AHEAD);
  });

  it('alternates between campaigns of any size', async () => {
    const setup = await startCampaigns();
    await addMembers(setup, 1500);
    const small = await setup.createGroup('Small');
    await setup.member('ada@example.net', {}, small);
    const large = granted(await setup.send());
    const little = granted(await setup.send({ subscriptionGroupId: small }));
    setup.runner.start();
    await queued(setup, little.campaign_id, 1);
    expect(setup.progress(large.campaign_id).queued).toBeLessThan(1500);
  });

  it('stops while the queue is full', async () => {
    const setup = await startCampaigns();
    await addMembers(setup, 10);
    const row = granted(await setup.send());
    setup.setPressure(refuse('UNAVAILABLE', 'the disk is nearly full'));
    setup.runner.start();
    await setup.severalRounds();
    expect(setup.progress(row.campaign_id).queued).toBe(0);
    setup.setPressure(null);
    setup.runner.wake();
    await queued(setup, row.campaign_id, 10);
  });

  it('skips members who were erased meanwhile and cancels their queued messages', async () => {
    const setup = await startCampaigns();
    const people = await Promise.all(['a', 'b', 'c'].map((name) => setup.member(`${name}@d0.example`)));
    const row = granted(await setup.send({ perHour: 1 }));
    setup.runner.start();
    await queued(setup, row.campaign_id, 1);
    for (const { email_hash } of people.slice(0, 2))
      granted(await setup.audience.erasure.erase('acct_one', email_hash ?? ''));
    setup.clock.advance(HOUR);
    setup.runner.wake();
    await queued(setup, row.campaign_id, 2);
    expect(setup.messages(row).map(({ recipient, status }) => [recipient, status])).toEqual([
      [people[0]?.email_hash, 'cancelled'],
      ['c@d0.example', 'queued'],
    ]);
  });

  it('skips members who joined after the start', async () => {
    const setup = await startCampaigns();
    await addMembers(setup, 10);
    const row = granted(await setup.send());
    await setup.member('late@example.net');
    setup.runner.start();
    await queued(setup, row.campaign_id, 10);
    await setup.deliverAll();
    await setup.until(row.campaign_id, 'sent');
    expect(setup.messages(row)).toHaveLength(10);
  });
});

describe('the queue', () => {
  it('never exceeds its limit, whatever the number of members and campaigns', async () => {
    const setup = await startCampaigns();
    await addMembers(setup, 200);
    setup.limitQueue(60);
    const first = granted(await setup.send());
    const second = granted(await setup.send());
    setup.runner.start();
    const both = () => setup.progress(first.campaign_id).queued + setup.progress(second.campaign_id).queued;
    for (let sent = 0; sent < 400; sent = both()) {
      await eventually('the queue to be full', () => both() >= Math.min(400, sent + 60), { everyMs: 5 });
      await setup.severalRounds();
      expect(setup.tables.queue.count()).toBeLessThanOrEqual(60);
      await setup.deliverAll();
      setup.runner.wake();
    }
  });

  it.each([
    ['after the last member', true],
    ['before the last member', false],
  ])('releases held messages while it is full, %s', async (_, isComplete) => {
    const setup = await startCampaigns();
    const { sending, tables, writer } = setup;
    await addMembers(setup, isComplete ? 50 : 80);
    setup.limitQueue(50);
    const row = granted(await setup.send());
    setup.runner.start();
    await queued(setup, row.campaign_id, 50);
    granted(await sending.pause('acct_one', row.campaign_id));
    await writer.run((rows) => {
      for (const { seq } of setup.messages(row)) rows.queue.defer(seq, HELD);
    });
    setup.setPressure(refuse('UNAVAILABLE', 'the queue holds 50 messages'));
    granted(await sending.resume('acct_one', row.campaign_id, { by: 'key_one' }));
    await eventually('the mail to be due', () => !tables.campaignSends.anyHeld(row.seq));
    await setup.deliverAll();
    if (isComplete) await setup.until(row.campaign_id, 'sent');
    await setup.severalRounds();
    expect(setup.progress(row.campaign_id).queued).toBe(50);
  });
});

describe('a batch of a campaign', () => {
  const KB = 1024;
  const distinct = Array.from({ length: 2800 }, (_, n) => `{{customFields.none|${n}}}`).join('');

  async function batchSizesOf(slots: string, bio: string): Promise<number[]> {
    const setup = await startCampaigns();
    await addMembers(setup, 12, (n) => ({ bio, ...(n === 0 ? { none: '' } : {}) }));
    const row = granted(await setup.send({ html: `${BODY.html}{{customFields.bio}}${slots}` }));
    const sizes: number[] = [];
    const update = setup.tables.campaignSends.update;
    setup.tables.campaignSends.update = (send) => {
      sizes.push(send.queued - sizes.reduce((sum, one) => sum + one, 0));
      update(send);
    };
    setup.runner.start();
    await queued(setup, row.campaign_id, 12);
    expect(new Set(setup.messages(row).map(({ recipient }) => recipient)).size).toBe(12);
    expect(setup.messages(row)).toHaveLength(12);
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
    const setup = await startCampaigns();
    await addMembers(setup, 12, () => ({ bio: 'x'.repeat(60 * KB) }));
    const row = granted(await setup.send({ html: `${BODY.html}${'{{customFields.bio}}'.repeat(150)}` }));
    const skipped: number[] = [];
    const update = setup.tables.campaignSends.update;
    setup.tables.campaignSends.update = (send) => {
      skipped.push(send.not_renderable);
      update(send);
    };
    setup.runner.start();
    await setup.until(row.campaign_id, 'sent');
    expect([...new Set(skipped)]).toEqual([4, 8, 12]);
  });
});

describe('queued messages of a campaign', () => {
  /** Ten messages, of which one is deferred. */
  async function waiting() {
    const setup = await startCampaigns();
    await addMembers(setup, 10);
    const row = granted(await setup.send());
    setup.runner.start();
    await queued(setup, row.campaign_id, 10);
    const all = setup.messages(row);
    const [deferred] = all;
    if (deferred === undefined) throw new Error('no message');
    await setup.writer.run((tables) => {
      tables.messages.setState(deferred.seq, 'deferred', 1, null, null);
      tables.queue.defer(deferred.seq, setup.clock.now() + HOUR);
    });
    return { ...setup, row, all, deferred };
  }

  it('are held when it is paused and due when it is resumed, with a new expiry', async () => {
    const { sending, row, all, tables, clock, until, writer, deferred } = await waiting();
    granted(await sending.pause('acct_one', row.campaign_id));
    // As the scheduler does with messages that leave the queue.
    const due = all.filter(({ seq }) => seq !== deferred.seq);
    await writer.run((rows) => {
      for (const message of due) {
        expect(sendingObstacle(rows, message)).toEqual({ kind: 'hold' });
        rows.queue.defer(message.seq, HELD);
      }
    });
    clock.advance(5 * DAY);
    granted(await sending.resume('acct_one', row.campaign_id, { by: 'key_one' }));
    await eventually('the mail to be due', () => due.every(({ seq }) => tables.queue.get(seq)?.ready === 1));
    for (const { seq } of due) {
      expect(tables.queue.get(seq)?.due_at).toBe(clock.now());
      expect(tables.messages.bySeq(seq)).toMatchObject({ attempts: 0, expires_at: clock.now() + 4 * DAY });
    }
    // A deferred message keeps its due time.
    expect(tables.queue.get(deferred.seq)).toMatchObject({ ready: 0, due_at: clock.now() - 5 * DAY + HOUR });
    expect(sendingObstacle(tables, deferred)).toBeNull();
    await until(row.campaign_id, 'sending');
  });

  it('are cancelled with it, also deferred ones', async () => {
    const { sending, row, all, tables, campaigns, writer } = await waiting();
    const [, leased] = all;
    if (leased === undefined) throw new Error('no message');
    await writer.run((rows) => rows.queue.lease(leased.seq, 1));
    granted(await sending.cancel('acct_one', row.campaign_id));
    expect(sendingObstacle(tables, leased)).toEqual({
      kind: 'email_failed',
      fields: { reason: 'cancelled' },
    });
    await eventually('the other messages to be cancelled', () => tables.queue.count() === 1);
    for (const { seq } of all.filter((message) => message !== leased)) {
      expect(tables.messages.bySeq(seq)?.status).toBe('cancelled');
      expect(tables.events.ofMessage(seq).map(({ kind, data }) => `${kind} ${data}`)).toEqual([
        'email_failed {"reason":"cancelled"}',
      ]);
    }
    // One is still being sent: its state depends on the campaign.
    expect(await campaigns.remove('acct_one', row.campaign_id)).toMatchObject({ code: 'INVALID_STATE' });
    await writer.run((rows) => rows.queue.release(leased.seq, 1));
    await eventually('the last message to be cancelled', () => tables.campaignSends.open().length === 0);
    expect(tables.queue.count()).toBe(0);
    granted(await campaigns.remove('acct_one', row.campaign_id));
  });

  it('can be cancelled after the campaign is sent while messages are deferred', async () => {
    const { sending, row, tables, until, deliverAll, deferred, progress } = await waiting();
    await deliverAll();
    await until(row.campaign_id, 'sent');
    expect(tables.queue.get(deferred.seq)).not.toBeNull();
    expect(progress(row.campaign_id)).toMatchObject({ cancellable: true });
    granted(await sending.cancel('acct_one', row.campaign_id));
    await eventually('the deferred message to be cancelled', () => tables.queue.count() === 0);
    expect(progress(row.campaign_id)).toMatchObject({ cancellable: false });
    expect(tables.messages.bySeq(deferred.seq)?.status).toBe('cancelled');
  });

  it('are sent when the campaign is deleted', async () => {
    const { row, tables, until, deliverAll, deferred, campaigns } = await waiting();
    await deliverAll();
    await until(row.campaign_id, 'sent');
    granted(await campaigns.remove('acct_one', row.campaign_id));
    expect(sendingObstacle(tables, deferred)).toBeNull();
  });

  it('do not include messages that only name the campaign', async () => {
    const { sending, row, tables, all } = await waiting();
    granted(await sending.pause('acct_one', row.campaign_id));
    const [, message] = all;
    if (message === undefined) throw new Error('no message');
    expect(sendingObstacle(tables, { ...message, job_id: 'job_1_other' })).toBeNull();
    expect(sendingObstacle(tables, { ...message, job_id: null })).toBeNull();
  });
});

describe('a change during sending', () => {
  const domain = (setup: CampaignSetup, status: 'SUCCESS' | 'FAILED') =>
    setup.db.prepare('UPDATE domains SET status = ? WHERE domain_id = ?').run(status, 'domain_mk');
  const group = (setup: CampaignSetup, isActive: boolean) =>
    setup.audience.groups.update('acct_one', setup.groupId, { isActive });

  it.each<
    [
      what: string,
      code: string,
      (setup: CampaignSetup) => unknown,
      ((setup: CampaignSetup) => unknown) | null,
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
    const setup = await startCampaigns({}, { maxAhead: MAX_AHEAD });
    const { send, sending, runner, until, progress, clock } = setup;
    await addMembers(setup, MAX_AHEAD + 100);
    const row = granted(await send());
    const id = row.campaign_id;
    runner.start();
    await queued(setup, id, MAX_AHEAD);
    await damage(setup);
    // Messages that have waited for five minutes no longer count: the next batch is due.
    clock.advance(5 * MINUTE);
    await until(id, 'paused');
    expect(progress(id).pausedReason).toMatch(new RegExp(`^${code}: `));
    expect(await sending.resume('acct_one', id, { by: 'key_one' })).toMatchObject({ code });
    expect(progress(id)).toMatchObject({ queued: MAX_AHEAD, pausedReason: expect.any(String) });
    if (correct === null) {
      granted(await sending.cancel('acct_one', id));
      await eventually('its mail to be cancelled', () => setup.tables.queue.count() === 0);
      return;
    }
    await correct(setup);
    granted(await sending.resume('acct_one', id, { by: 'key_one' }));
    await queued(setup, id, MAX_AHEAD + 100);
    expect(progress(id).pausedReason).toBeNull();
  });

  it('does not delay other campaigns when one fails', async () => {
    const setup = await startCampaigns();
    await addMembers(setup, 10);
    const broken = granted(await setup.send());
    setup.db.prepare('UPDATE campaign_mails SET mail = ?').run('{');
    const sound = granted(await setup.send());
    setup.runner.start();
    await queued(setup, sound.campaign_id, 10);
    expect(setup.campaign(broken.campaign_id).status).toBe('sending');
    expect(setup.progress(broken.campaign_id).queued).toBe(0);
  });
});

describe('a campaign with perHour', () => {
  it('sends evenly, also over a restart', async () => {
    const setup = await startCampaigns();
    await addMembers(setup, 30);
    const row = granted(await setup.send({ perHour: 480 }));
    setup.runner.start();
    // Two every fifteen seconds.
    const counts: number[] = [];
    for (let n = 0; n < 3; n++) {
      await queued(setup, row.campaign_id, 2 * (n + 1));
      await setup.severalRounds();
      counts.push(setup.progress(row.campaign_id).queued);
      setup.clock.advance(15_040);
      setup.runner.wake();
    }
    expect(counts).toEqual([2, 4, 6]);
    await setup.runner.stop();
    const before = setup.progress(row.campaign_id).queued;
    const next = setup.anotherRunner();
    next.start();
    await setup.severalRounds();
    expect(setup.progress(row.campaign_id).queued - before).toBeLessThanOrEqual(2);
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
    const setup = await startCampaigns();
    await addMembers(setup, 2500, (n) =>
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
    const known = (account: string) => createContactFieldNames(setup.reader).known(account, names);
    expect([...(await known('acct_one'))]).toEqual(['customFields.plan', 'customFields.rare.deep']);
    expect([...(await known('acct_two'))]).toEqual([]);
  });

  it('by reading each batch of contacts once for all names', async () => {
    const setup = await startCampaigns();
    await addMembers(setup, 1000, () => ({ plan: 'x' }));
    const { campaignSends } = setup.tables;
    const fieldsAmong = campaignSends.fieldsAmong;
    const callsFor = async (count: number) => {
      let calls = 0;
      campaignSends.fieldsAmong = (...asked) => {
        calls++;
        return fieldsAmong(...asked);
      };
      const names = Array.from({ length: count }, (_, n) => `customFields.f${n}`);
      expect((await createContactFieldNames(setup.reader).known('acct_one', names)).size).toBe(0);
      return calls;
    };
    expect(await callsFor(150)).toBe(await callsFor(1));
  });

  it('in reads of a limited number of contacts and bytes, for one check of an account at a time', async () => {
    const setup = await startCampaigns();
    await addMembers(setup, 1500, (n) => (n < 40 ? { long: 'x'.repeat(60_000) } : {}));
    const sizes = setup.db.prepare<[number, number], { contacts: number; bytes: number }>(
      'SELECT count(*) AS contacts, sum(octet_length(custom_fields)) AS bytes FROM contacts WHERE seq > ? AND seq <= ?',
    );
    const { campaignSends } = setup.tables;
    const { fieldsAmong } = campaignSends;
    const read: ({ contacts: number; bytes: number } | undefined)[] = [];
    campaignSends.fieldsAmong = (accountId, after, upTo, names) => {
      read.push(sizes.get(after, upTo));
      return fieldsAmong(accountId, after, upTo, names);
    };
    const local = createLocalReader(setup.tables);
    const running: string[] = [];
    let most = 0;
    const reader: Reader = {
      ...local,
      query: async (accountId, ...rest) => {
        running.push(accountId);
        most = Math.max(most, running.filter((each) => each === accountId).length);
        await new Promise(setImmediate);
        running.splice(running.indexOf(accountId), 1);
        return local.query(accountId, ...rest);
      },
    };
    const check = createContactFieldNames(reader);
    await Promise.all(Array.from({ length: 8 }, () => check.known('acct_one', ['customFields.typo'])));
    expect(most).toBe(1);
    // The custom fields of 40 contacts have 2.4 MB, the others two bytes each.
    expect(read.length).toBe(8 * 4);
    expect(Math.max(...read.map((each) => each?.contacts ?? 0))).toBe(1000);
    expect(Math.max(...read.map((each) => each?.bytes ?? 0))).toBeLessThan(1024 * 1024 + 61_000);
  });
});

describe('campaigns of a disabled account', () => {
  const setStatus = ({ tables }: CampaignSetup, status: 'active' | 'disabled') => {
    const row = tables.accounts.get('acct_one');
    if (row === null) throw new Error('there is no account');
    tables.accounts.update({ ...row, status });
  };

  it('wait until it is enabled, without a change of their state', async () => {
    const setup = await startCampaigns();
    const { clock, runner, tables } = setup;
    await addMembers(setup, 300);
    const begun = granted(await setup.send());
    const planned = granted(await setup.send({ scheduledAt: iso(clock.now() + HOUR) }));
    runner.start();
    await queued(setup, begun.campaign_id, 100);
    setStatus(setup, 'disabled');
    const { queued: before } = setup.progress(begun.campaign_id);
    clock.advance(2 * HOUR);
    const reads = vi.spyOn(tables.accounts, 'get');
    // Each round reads the account of both campaigns.
    await eventually('three rounds', () => reads.mock.calls.length >= 6, { everyMs: 5 });
    expect(setup.progress(begun.campaign_id).queued - before).toBeLessThanOrEqual(100);
    expect(setup.campaign(begun.campaign_id)).toMatchObject({ status: 'sending' });
    expect(setup.campaign(planned.campaign_id)).toMatchObject({ status: 'scheduled' });
    setStatus(setup, 'active');
    await queued(setup, begun.campaign_id, 300);
    await queued(setup, planned.campaign_id, 300);
    await setup.deliverAll();
    await setup.until(begun.campaign_id, 'sent');
    await setup.until(planned.campaign_id, 'sent');
  });
});

describe("an account's message limits", () => {
  it('make a campaign wait until they permit more', async () => {
    const setup = await startCampaigns({ messagesPerHour: 30 });
    await addMembers(setup, 70);
    const row = granted(await setup.send());
    const sent = (count: number) =>
      eventually(`${count} messages`, () => (setup.messages(row).length === count ? true : null));
    setup.runner.start();
    await sent(30);
    await setup.deliverAll();
    setup.clock.advance(HOUR + 5 * MINUTE);
    await sent(60);
    expect(setup.campaign(row.campaign_id)).toMatchObject({ status: 'sending' });
    // A limit that the operator raises applies without a restart.
    await changeLimits(setup, 'acct_one', { messagesPerHour: null });
    await sent(70);
    await setup.deliverAll();
    await setup.until(row.campaign_id, 'sent');
    const addresses = setup.messages(row).map(({ recipient }) => recipient);
    expect(new Set(addresses).size).toBe(70);
  });

  it('count members at the simulator', async () => {
    const setup = await startCampaigns({ messagesPerHour: 2 });
    for (const name of ['a', 'b', 'c']) await setup.member(`delivered+${name}@simulator.mail.test`);
    const row = granted(await setup.send());
    setup.runner.start();
    await eventually('the first messages', () => setup.messages(row).length === 2);
    await setup.severalRounds();
    expect(setup.messages(row)).toHaveLength(2);
    expect(setup.limits.allowance(setup.tables, 'acct_one', setup.clock.now()).left).toBe(0);
  });

  it('roll back a batch that they refuse, which is repeated', async () => {
    const setup = await startCampaigns({ messagesPerHour: 30 });
    await addMembers(setup, 3);
    const refusing = vi
      .spyOn(setup.limits, 'takeMessages')
      .mockReturnValue(refuse('RATE_LIMITED', 'refused in a test'));
    const row = granted(await setup.send());
    setup.runner.start();
    await eventually('a refused batch', () => refusing.mock.calls.length > 0);
    expect(setup.messages(row)).toEqual([]);
    refusing.mockRestore();
    await eventually('the repeated batch', () => {
      setup.clock.advance(MINUTE);
      setup.runner.wake();
      return setup.progress(row.campaign_id).queued === 3;
    });
    expect(setup.messages(row)).toHaveLength(3);
    expect(setup.campaign(row.campaign_id)).toMatchObject({ status: 'sending' });
  });
});
