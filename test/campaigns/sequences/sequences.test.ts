import { describe, expect, it } from 'vitest';
import type { AccountLimitDefaults } from '../../../src/accounts/limits.ts';
import type { SequenceStep } from '../../../src/audience/sequences/definition.ts';
import { MAX_IN_PROGRESS } from '../../../src/audience/sequences/entries.ts';
import { MAX_SEQUENCES } from '../../../src/campaigns/sequences/sequences.ts';
import { DAY, HOUR, iso, MINUTE, SECOND } from '../../../src/core/clock.ts';
import { Refusal, refuse } from '../../../src/core/refusal.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import { createTemplates } from '../../../src/templates/templates.ts';
import { granted } from '../../support/refusal.ts';
import { insertAccount, insertDomain } from '../../support/store.ts';
import { templateThreads } from '../../support/template-threads.ts';
import { refusal } from '../setup.ts';
import { CALLER, message, OWNER, startSequences } from './setup.ts';

const ADA = emailIdentifier('ada@example.net');

describe('a sequence', () => {
  it('sends its messages to a contact that joins the group, with the waits between them', async () => {
    const setup = await startSequences();
    const row = await setup.active();
    await setup.contact('ada@example.net', { firstName: 'Ada' });
    await setup.run();
    expect(setup.sent()).toEqual([]);
    await setup.join('ada@example.net');
    await setup.run();
    expect(setup.sent()).toEqual(['ada@example.net One']);
    expect(setup.content('One').html).toContain('Hello Ada');
    expect(setup.content('One').list?.id).toBe(setup.groupId);
    setup.clock.advance(2 * DAY - 1);
    await setup.run();
    expect(setup.sent()).toHaveLength(1);
    expect(setup.people(row.seq)).toEqual([['ada@example.net', 'active', 2, null]]);
    setup.clock.advance(1);
    await setup.run();
    expect(setup.sent()).toEqual(['ada@example.net One', 'ada@example.net Two']);
    expect(setup.people(row.seq)).toEqual([['ada@example.net', 'ended', 3, 'completed']]);
    const { steps, ends } = setup.sequences.counts(row);
    expect(steps.map(({ step, people, queued }) => [step, people, queued])).toEqual([
      [0, 0, 1],
      [2, 0, 1],
    ]);
    expect(ends).toEqual([{ reason: 'completed', people: 1 }]);
  });

  it('ends after a wait at its end, and not before', async () => {
    const setup = await startSequences();
    const row = await setup.active({ steps: [message('One'), { wait: '2d' }, { end: true }] });
    await setup.contact('ada@example.net');
    await setup.join('ada@example.net');
    await setup.run();
    expect(setup.people(row.seq)).toEqual([['ada@example.net', 'active', 2, null]]);
    setup.clock.advance(2 * DAY);
    await setup.run();
    expect(setup.people(row.seq)).toEqual([['ada@example.net', 'ended', 2, 'completed']]);
  });

  it('waits while the person has paused marketing mail', async () => {
    const setup = await startSequences();
    const row = await setup.active();
    await setup.contact('ada@example.net');
    await setup.join('ada@example.net');
    const pauseUntil = (until: number | null) => {
      const contact = setup.tables.contacts.byIdentifier('acct_one', ADA);
      if (contact !== null) setup.tables.contacts.update({ ...contact, paused_until: until });
    };
    pauseUntil(setup.clock.now() + 30 * DAY);
    await setup.run();
    setup.clock.advance(2 * HOUR);
    await setup.run();
    expect(setup.sent()).toEqual([]);
    expect(setup.people(row.seq)).toEqual([['ada@example.net', 'active', 0, null]]);
    pauseUntil(null);
    setup.clock.advance(HOUR + MINUTE);
    await setup.run();
    expect(setup.sent()).toEqual(['ada@example.net One']);
  });

  it('is not examined all the time after a pause has ended that is still on record', async () => {
    const setup = await startSequences();
    await setup.active();
    const { seq } = await setup.contact('ada@example.net');
    await setup.join('ada@example.net');
    const contact = setup.tables.contacts.bySeq(seq);
    if (contact !== null)
      setup.tables.contacts.update({ ...contact, paused_until: setup.clock.now() - HOUR });
    expect(await setup.runner.round()).toBe(0);
    expect(await setup.runner.round()).toBeGreaterThan(0);
  });

  it('waits when the person pauses marketing mail while the message is prepared', async () => {
    const setup = await startSequences();
    const row = await setup.active();
    const { seq } = await setup.contact('ada@example.net');
    await setup.join('ada@example.net');
    const { runner } = setup.startProcess({
      run: async (work, accountId) => {
        const result = await setup.writer.run(work, accountId);
        const contact = setup.tables.contacts.bySeq(seq);
        if (contact !== null)
          setup.tables.contacts.update({ ...contact, paused_until: setup.clock.now() + DAY });
        return result;
      },
    });
    expect(await runner.round()).toBeGreaterThan(0);
    expect(setup.people(row.seq)).toEqual([['ada@example.net', 'active', 0, null]]);
  });

  it('is begun once by a person who leaves the group and returns', async () => {
    const setup = await startSequences();
    const row = await setup.active();
    await setup.contact('ada@example.net');
    await setup.join('ada@example.net');
    await setup.run();
    for (const isActive of [false, true])
      granted(await setup.audience.subscriptions.put('acct_one', setup.groupId, ADA, { isActive }, CALLER));
    setup.clock.advance(2 * DAY);
    await setup.run();
    expect(setup.sent()).toEqual(['ada@example.net One', 'ada@example.net Two']);
    expect(setup.people(row.seq)).toHaveLength(1);
  });

  it('begins after a confirmed sign-up', async () => {
    const setup = await startSequences();
    const row = await setup.active({ trigger: { confirmed: setup.groupId } });
    await setup.contact('eve@example.net');
    await setup.join('eve@example.net');
    const signUp = {
      email: 'ada@example.net',
      groupId: setup.groupId,
      firstName: 'Ada',
      lastName: '',
      language: null,
      at: setup.clock.now(),
    };
    granted(await setup.audience.signUps.confirm('acct_one', signUp, CALLER));
    await setup.run();
    expect(setup.sent()).toEqual(['ada@example.net One']);
    expect(setup.people(row.seq)).toHaveLength(1);
  });

  it('begins with an event, whose properties its messages can use, once for each event', async () => {
    const setup = await startSequences();
    const row = await setup.active({
      trigger: { event: 'order placed' },
      steps: [message('Thanks', 'You paid {{event.total}}{{event.unknown}}')],
    });
    await setup.contact('ada@example.net');
    const order = (key: string) =>
      setup.sequences.recordEvent('acct_one', ADA, {
        name: 'order placed',
        properties: { total: '49.90' },
        idempotencyKey: key,
      });
    const results = async (key: string) => granted(await order(key)).entries.map(({ result }) => result);
    expect(await results('order-1')).toEqual(['entered']);
    expect(await results('order-1')).toEqual(['repeated']);
    expect(await results('order-2')).toEqual(['in_progress']);
    await setup.run();
    expect(setup.content('Thanks').html).toContain('You paid 49.90<');
    expect(await results('order-1')).toEqual(['repeated']);
    expect(await results('order-3')).toEqual(['entered']);
    expect(granted(await setup.sequences.recordEvent('acct_one', ADA, { name: 'other' })).entries).toEqual(
      [],
    );
    await setup.run();
    expect(setup.sent()).toHaveLength(2);
    // Records of events are deleted by age.
    await setup.writer.run((tx) => tx.retention.sequencePeople.purge(setup.clock.now() + 1, 10));
    expect(setup.people(row.seq)).toEqual([]);
  });

  it('begins when a custom field gets another value', async () => {
    const setup = await startSequences();
    await setup.active({ trigger: { fieldSet: 'plan' }, steps: [message('{{customFields.plan}}')] });
    const set = (plan: unknown) =>
      setup.audience.contacts.update('acct_one', ADA, { customFields: { plan } }, { ...CALLER, merge: true });
    await setup.contact('ada@example.net');
    await setup.contact('eve@example.net', { customFields: { plan: 'gold' } });
    await setup.run();
    for (const plan of ['silver', 'silver', null, 'gold', 'silver']) {
      await set(plan);
      await setup.run();
    }
    expect(setup.sent()).toEqual(['eve@example.net gold', 'ada@example.net silver', 'ada@example.net gold']);
  });

  it('begins when the date in a custom field is reached, also of contacts that had it before', async () => {
    const setup = await startSequences();
    const at = (days: number) => iso(setup.clock.now() + days * DAY).slice(0, 10);
    await setup.contact('ada@example.net', { customFields: { expires: at(10) } });
    await setup.contact('past@example.net', { customFields: { expires: at(2) } });
    await setup.contact('none@example.net', { customFields: { expires: 'soon' } });
    const row = await setup.active({
      trigger: { dateField: 'expires', offsetDays: -5 },
      steps: [message('Expires')],
    });
    await setup.run();
    expect(setup.people(row.seq)).toEqual([['ada@example.net', 'scheduled', 0, null]]);
    await setup.contact('eve@example.net', { customFields: { expires: at(10) } });
    await setup.contact('moved@example.net', { customFields: { expires: at(10) } });
    const moved = emailIdentifier('moved@example.net');
    const later = { customFields: { expires: at(20) } };
    granted(await setup.audience.contacts.update('acct_one', moved, later, { ...CALLER, merge: true }));
    setup.clock.advance(5 * DAY);
    await setup.run();
    // Messages of one round have no order.
    expect(setup.sent().toSorted()).toEqual(['ada@example.net Expires', 'eve@example.net Expires']);
    setup.clock.advance(10 * DAY);
    await setup.run();
    expect(setup.sent().slice(2)).toEqual(['moved@example.net Expires']);
  });

  it('continues, skips a step or ends by a condition, and ends at its goal', async () => {
    const setup = await startSequences();
    const has = (plan: string) => ({ field: 'customFields.plan', op: 'is' as const, value: plan });
    const row = await setup.active({
      steps: [
        { when: { not: has('none') }, otherwise: 'end' },
        { when: has('gold'), otherwise: 'skip' },
        message('Gold'),
        { wait: '1h' },
        message('All'),
        { end: true },
        message('Never'),
      ],
      goal: has('done'),
    });
    for (const plan of ['none', 'gold', 'silver', 'later']) {
      await setup.contact(`${plan}@example.net`, { customFields: { plan } });
      await setup.join(`${plan}@example.net`);
    }
    await setup.run();
    granted(
      await setup.audience.contacts.update(
        'acct_one',
        emailIdentifier('later@example.net'),
        { customFields: { plan: 'done' } },
        { ...CALLER, merge: true },
      ),
    );
    setup.clock.advance(HOUR);
    await setup.run();
    expect(setup.sent()[0]).toBe('gold@example.net Gold');
    // Messages of one round have no order.
    expect(setup.sent().slice(1).toSorted()).toEqual(['gold@example.net All', 'silver@example.net All']);
    expect(setup.people(row.seq).map(([email, , , reason]) => [email, reason])).toEqual([
      ['none@example.net', 'condition'],
      ['gold@example.net', 'completed'],
      ['silver@example.net', 'completed'],
      ['later@example.net', 'goal'],
    ]);
  });

  it('ends for a person who opts out, is suppressed or has no consent', async () => {
    const setup = await startSequences();
    const row = await setup.active();
    for (const name of ['left', 'bounced', 'ada'])
      await setup.contact(`${name}@example.net`).then(() => setup.join(`${name}@example.net`));
    await setup.contact('never@example.net', { consent: null });
    await setup.join('never@example.net');
    await setup.run();
    granted(
      await setup.audience.subscriptions.put(
        'acct_one',
        setup.groupId,
        emailIdentifier('left@example.net'),
        { isActive: false },
        CALLER,
      ),
    );
    granted(
      await setup.audience.contacts.update(
        'acct_one',
        emailIdentifier('bounced@example.net'),
        { globalStatus: 'bounced' },
        { ...CALLER, merge: true },
      ),
    );
    setup.clock.advance(2 * DAY);
    await setup.run();
    expect(setup.people(row.seq).map(([email, , , reason]) => [email, reason])).toEqual([
      ['left@example.net', 'unsubscribed'],
      ['bounced@example.net', 'suppressed'],
      ['ada@example.net', 'completed'],
      ['never@example.net', 'not_subscribed'],
    ]);
    expect(setup.sent().filter((line) => line.endsWith('Two'))).toEqual(['ada@example.net Two']);
  });

  it('lets people finish the version that they began', async () => {
    const setup = await startSequences();
    const row = await setup.active();
    await setup.contact('ada@example.net');
    await setup.contact('eve@example.net');
    await setup.join('ada@example.net');
    await setup.run();
    const steps = [message('First'), { wait: '1h' }, message('Second')];
    const changed = granted(await setup.sequences.update(OWNER, row.sequence_id, { steps }));
    expect(changed.row.version).toBe(2);
    await setup.join('eve@example.net');
    await setup.run();
    setup.clock.advance(3 * DAY);
    await setup.run();
    expect(setup.sent()[0]).toBe('ada@example.net One');
    // Messages of one round have no order.
    expect(setup.sent().slice(1).toSorted()).toEqual([
      'ada@example.net Two',
      'eve@example.net First',
      'eve@example.net Second',
    ]);
    granted(await setup.sequences.update(OWNER, row.sequence_id, { steps: [message('New')] }));
    expect(setup.tables.sequences.versions(row.seq)).toEqual([3]);
    expect(setup.sequences.counts(row).steps).toEqual([]);
  });

  it('records and moves nobody while the account has paused it', async () => {
    const setup = await startSequences();
    const row = await setup.active();
    for (const name of ['ada', 'eve']) await setup.contact(`${name}@example.net`);
    await setup.join('ada@example.net');
    await setup.run();
    granted(await setup.sequences.pause(OWNER, row.sequence_id));
    await setup.join('eve@example.net');
    setup.clock.advance(9 * DAY);
    await setup.run();
    expect(setup.sent()).toHaveLength(1);
    granted(await setup.sequences.activate(OWNER, row.sequence_id));
    await setup.run();
    expect(setup.sent()).toEqual(['ada@example.net One', 'ada@example.net Two']);
  });

  it('is paused by the service when it cannot send, and then records who enters', async () => {
    const setup = await startSequences();
    const row = await setup.active();
    for (const name of ['ada', 'eve']) await setup.contact(`${name}@example.net`);
    const status = (value: string) =>
      setup.db.prepare('UPDATE domains SET status = ? WHERE domain_id = ?').run(value, 'domain_mk');
    await setup.writer.run(() => void status('FAILED'));
    await setup.join('ada@example.net');
    await setup.run();
    expect(granted(setup.sequences.get('acct_one', row.sequence_id)).row).toMatchObject({
      status: 'paused',
      paused_reason: expect.stringContaining('DOMAIN_NOT_VERIFIED'),
    });
    await setup.join('eve@example.net');
    expect(refusal(await setup.sequences.activate(OWNER, row.sequence_id))).toEqual([
      'DOMAIN_NOT_VERIFIED',
      ['steps[0].send.from'],
    ]);
    await setup.writer.run(() => void status('SUCCESS'));
    granted(await setup.sequences.activate(OWNER, row.sequence_id));
    await setup.run();
    // Messages of one round have no order.
    expect(setup.sent().toSorted()).toEqual(['ada@example.net One', 'eve@example.net One']);
  });

  it('waits for the message limits of the account and for the queue, and loses nobody', async () => {
    const setup = await startSequences({ messagesPerHour: 3 });
    await setup.active({ steps: [message('One')] });
    for (let n = 0; n < 7; n++) {
      await setup.contact(`user${n}@example.net`);
      await setup.join(`user${n}@example.net`);
    }
    setup.setPressure(refuse('UNAVAILABLE', 'full'));
    await setup.run();
    expect(setup.sent()).toEqual([]);
    setup.setPressure(null);
    for (const expected of [3, 6, 7]) {
      await setup.run();
      expect(setup.sent()).toHaveLength(expected);
      setup.clock.advance(HOUR + 10 * MINUTE);
    }
  });

  it('skips a message that cannot be rendered for a contact', async () => {
    const setup = await startSequences();
    const row = await setup.active({
      steps: [message('{{customFields.long}}'), message('Two')],
    });
    await setup.contact('ada@example.net', { customFields: { long: 'x'.repeat(1500) } });
    await setup.join('ada@example.net');
    await setup.run();
    expect(setup.sent()).toEqual(['ada@example.net Two']);
    expect(setup.sequences.counts(row).steps[0]).toMatchObject({ step: 0, skipped: 1, queued: 0 });
  });

  it('has its groups and templates until it is deleted, with its people and its bytes', async () => {
    const setup = await startSequences();
    const bytes = () => setup.tables.accountLimits.storedBytes('acct_one');
    await setup.contact('eve@example.net');
    const before = bytes();
    const row = await setup.active();
    await setup.join('eve@example.net');
    expect(bytes()).toBeGreaterThan(before + 500);
    expect(refusal(await setup.audience.groups.remove('acct_one', setup.groupId))[0]).toBe('INVALID_STATE');
    granted(await setup.sequences.remove('acct_one', row.sequence_id));
    await setup.run();
    expect(setup.sent()).toEqual([]);
    expect(setup.tables.sequences.bySeq(row.seq)).toBeNull();
    expect(bytes()).toBe(before);
    granted(await setup.audience.groups.remove('acct_one', setup.groupId));
  });

  it('loses a contact that is erased', async () => {
    const setup = await startSequences();
    const row = await setup.active();
    await setup.contact('ada@example.net');
    await setup.join('ada@example.net');
    await setup.run();
    granted(await setup.audience.erasure.erase('acct_one', ADA));
    setup.clock.advance(2 * DAY);
    await setup.run();
    expect([setup.people(row.seq), setup.sent()]).toEqual([[], [expect.not.stringContaining('ada')]]);
    expect(setup.tables.sequencePeople.inProgress(row.seq)).toBe(0);
  });
});

describe('people whose step is due and cannot be taken', () => {
  /** A sequence with one person who is due; `people` has what they wait for. */
  async function startDue(defaults: AccountLimitDefaults = {}) {
    const setup = await startSequences(defaults);
    const row = await setup.active({ steps: [message('One')] });
    await setup.contact('ada@example.net');
    await setup.join('ada@example.net');
    const waitsFor = async () => {
      const page = granted(
        await setup.sequences.people('acct_one', row.sequence_id, { beforeSeq: null, limit: 10 }),
      );
      return page.rows.map((person) => [person.state, person.waitsFor]);
    };
    const change = (sql: string) => setup.writer.run(() => void setup.db.prepare(sql).run());
    /** The next round pauses for the interval; nobody has moved and nothing was sent. */
    const isWaiting = async (obstacle: string) => {
      expect(await setup.runner.round()).toBeGreaterThan(0);
      expect(await setup.runner.round()).toBeGreaterThan(0);
      expect(await waitsFor()).toEqual([['active', obstacle]]);
      expect(setup.sent()).toEqual([]);
    };
    const pausedReason = () => setup.tables.sequences.bySeq(row.seq)?.paused_reason;
    const continues = async () => {
      await setup.run();
      expect(setup.sent()).toEqual(['ada@example.net One']);
    };
    const activate = async () => void granted(await setup.sequences.activate(OWNER, row.sequence_id));
    return { ...setup, row, change, isWaiting, continues, pausedReason, activate, waitsFor };
  }

  it('wait while the domain is not verified', async () => {
    const setup = await startDue();
    await setup.change("UPDATE domains SET status = 'FAILED' WHERE domain_id = 'domain_mk'");
    await setup.isWaiting('paused');
    expect(setup.pausedReason()).toContain('DOMAIN_NOT_VERIFIED');
    await setup.change("UPDATE domains SET status = 'SUCCESS' WHERE domain_id = 'domain_mk'");
    await setup.activate();
    await setup.continues();
  });

  it('wait while the group is inactive or deleted', async () => {
    const setup = await startDue();
    const set = (isActive: number) => setup.change(`UPDATE subscription_groups SET is_active = ${isActive}`);
    await set(0);
    // The round in which the sequence is paused is one with work.
    await setup.run();
    await setup.isWaiting('paused');
    expect(setup.pausedReason()).toContain('SUBSCRIPTION_GROUP_NOT_FOUND');
    expect(refusal(await setup.sequences.activate(OWNER, setup.row.sequence_id))).toEqual([
      'VALIDATION_ERROR',
      ['trigger'],
    ]);
    await set(1);
    await setup.activate();
    await setup.change(`UPDATE subscription_groups SET deleted_at = 1`);
    await setup.run();
    await setup.isWaiting('paused');
    await setup.change(`UPDATE subscription_groups SET deleted_at = NULL`);
    await setup.activate();
    await setup.continues();
  });

  it('wait while the template does not exist', async () => {
    const setup = await startSequences();
    const templates = createTemplates(setup, setup.limits.mayAdd.templates, templateThreads());
    const template = granted(
      await templates.create('acct_one', {
        name: 'One',
        type: null,
        subject: 'One',
        design: null,
        html: message('One').send?.html ?? '',
        text: null,
        variables: [],
      }),
    );
    const row = await setup.active({
      steps: [{ send: { from: 'News <news@news.example>', templateId: template.template_id } }],
    });
    await setup.contact('ada@example.net');
    await setup.join('ada@example.net');
    await setup.writer.run(() => void setup.db.prepare('DELETE FROM templates').run());
    await setup.run();
    expect(await setup.runner.round()).toBeGreaterThan(0);
    expect(setup.tables.sequences.bySeq(row.seq)?.paused_reason).toContain('TEMPLATE_NOT_FOUND');
    expect(setup.people(row.seq)).toEqual([['ada@example.net', 'active', 0, null]]);
  });

  it('wait while the account is disabled', async () => {
    const setup = await startDue();
    await setup.change("UPDATE accounts SET status = 'disabled'");
    await setup.isWaiting('account_disabled');
    await setup.change("UPDATE accounts SET status = 'active'");
    await setup.continues();
  });

  it('wait for the limit of stored bytes, the message limit and the service, without a pause', async () => {
    const setup = await startDue({ messagesPerHour: 1 });
    const full = refuse('LIMIT_REACHED', 'full');
    setup.setPressure(full);
    await setup.isWaiting('stored_bytes');
    setup.setPressure(refuse('UNAVAILABLE', 'full'));
    await setup.isWaiting('service_busy');
    setup.setPressure(null);
    setup.tables.messageCounts.add('acct_one', 1, setup.clock.now());
    await setup.isWaiting('message_limit');
    setup.clock.advance(2 * HOUR);
    // The limit of stored bytes is reached while the message is prepared.
    const { runner } = setup.startProcess({
      run: async (work, accountId) => {
        const result = await setup.writer.run(work, accountId);
        setup.setPressure(full);
        return result;
      },
    });
    expect(await runner.round()).toBeGreaterThan(0);
    await setup.isWaiting('stored_bytes');
    expect(setup.pausedReason()).toBeNull();
    setup.setPressure(null);
    await setup.continues();
  });

  it('wait while they have paused marketing mail', async () => {
    const setup = await startDue();
    await setup.change(`UPDATE contacts SET paused_until = ${setup.clock.now() + DAY}`);
    await setup.run();
    await setup.isWaiting('person_paused');
  });

  it('wait while the service fails, and are tried again', async () => {
    const setup = await startDue();
    const definition = setup.tables.sequences.definition(setup.row.seq, 1);
    await setup.change("UPDATE sequence_versions SET definition = '{'");
    await setup.runner.round();
    expect(setup.runner.obstacle({ ...setup.row, status: 'active' })).toBe('failing');
    await setup.writer.run(
      () => void setup.db.prepare('UPDATE sequence_versions SET definition = ?').run(definition),
    );
    setup.clock.advance(MINUTE);
    await setup.continues();
  });
});

describe('the limits of sequences', () => {
  it('are 100 sequences of an account', async () => {
    const setup = await startSequences();
    const create = (steps: SequenceStep[] = []) =>
      setup.sequences.create(OWNER, { name: 'S', trigger: { event: 'bought' }, steps });
    for (let n = 0; n < MAX_SEQUENCES; n++) granted(await create());
    expect(refusal(await create())).toEqual(['LIMIT_REACHED', ['sequences']]);
  });

  it('are a number of people in progress, above which nobody enters and all are counted', async () => {
    const setup = await startSequences();
    const row = await setup.active({ steps: [{ wait: '1d' }, message('One')] });
    for (const name of ['ada', 'eve', 'bob']) await setup.contact(`${name}@example.net`);
    await setup.join('ada@example.net');
    const setCount = (people: number) =>
      setup.writer.run(() => void setup.db.prepare('UPDATE sequence_counts SET people = ?').run(people));
    await setCount(MAX_IN_PROGRESS - 1);
    await setup.join('eve@example.net');
    await setup.join('bob@example.net');
    expect(setup.people(row.seq).map(([email]) => email)).toEqual(['ada@example.net', 'eve@example.net']);
    expect(setup.tables.sequences.bySeq(row.seq)?.missed).toBe(1);
    expect(setup.tables.sequencePeople.inProgress(row.seq)).toBe(MAX_IN_PROGRESS);
  });

  it('are events of a contact, which do not use up those of others', async () => {
    const setup = await startSequences();
    for (const name of ['ada', 'eve']) await setup.contact(`${name}@example.net`);
    const record = (name: string) =>
      setup.sequences.recordEvent('acct_one', emailIdentifier(`${name}@example.net`), { name: 'seen' });
    for (let n = 0; n < 100; n++) granted(await record('ada'));
    expect(refusal(await record('ada'))).toEqual(['RATE_LIMITED', ['contactIdentifier']]);
    granted(await record('eve'));
    setup.clock.advance(6 * SECOND);
    granted(await record('ada'));
    expect((await record('ada')) instanceof Refusal).toBe(true);
  });
});

describe('many people of one account who are due at the same time', () => {
  const MANY = 10_000;
  const FOOTER = '{{company_address_text}}{{unsubscribe_email_text}}';
  /** Steps of an account in one turn. */
  const PORTION = 25;

  async function startMany() {
    const setup = await startSequences();
    const row = await setup.active({ trigger: { event: 'bought' }, steps: [message('One')] });
    const user = await setup.contact('user@example.net');
    setup.db.pragma('synchronous = OFF');
    await setup.writer.run((tx) => {
      for (let n = 0; n < MANY; n++) {
        const email = `user${n}@example.net`;
        const identity = { user_id: `user-${n}`, email, email_hash: emailIdentifier(email) };
        const seq = tx.contacts.insert({ ...user, ...identity });
        tx.sequencePeople.insert({
          sequence_seq: row.seq,
          contact_seq: seq,
          occurrence: 'event:one',
          version: 1,
          state: 'active',
          step: 0,
          due_at: 0,
          properties: null,
          entered_at: 0,
        });
      }
      setup.db.prepare('UPDATE contacts SET consent_n = 1').run();
    });
    const now = setup.clock.now();
    insertAccount(setup.tables, 'acct_two', now);
    for (const [use_case, name] of [
      ['mk', 'news.two.example'],
      ['tx', 'two.example'],
    ] as const)
      insertDomain(
        setup.tables,
        { account_id: 'acct_two', domain_id: `domain_two_${use_case}`, name, use_case },
        now,
      );
    const sentBy = (accountId: string) =>
      setup.tables.messages.list({ accountId, limit: 10_000 }).rows.map(({ subject }) => subject);
    return { ...setup, sentBy };
  }

  it('do not delay the sequences of others: each account has its turn', async () => {
    const setup = await startMany();
    granted(await setup.audience.contacts.create('acct_two', { email: 'ada@example.net' }, CALLER));
    granted(
      await setup.sequences.create(
        { accountId: 'acct_two', allowFrom: [] },
        {
          name: 'Two',
          trigger: { event: 'bought' },
          steps: [{ send: { ...message('Two').send, from: 'News <news@news.two.example>' } }],
          status: 'active',
        },
      ),
    );
    granted(await setup.sequences.recordEvent('acct_two', ADA, { name: 'bought' }));
    expect(await setup.runner.round()).toBe(0);
    expect(setup.sentBy('acct_two')).toEqual(['Two']);
    expect(setup.sentBy('acct_one')).toHaveLength(PORTION);
  });

  it('do not delay transactional mail, which is accepted between two portions', async () => {
    const setup = await startMany();
    const account = setup.tables.accounts.get('acct_two');
    if (account === null) throw new Error('there is no second account');
    const rounds = (async () => {
      for (let n = 0; n < 8; n++) await setup.runner.round();
    })();
    for (let n = 0; n < 3; n++) {
      const before = setup.sentBy('acct_one').length;
      granted(
        await setup.accept({
          sender: { account, useCase: 'tx', allowFrom: [], allowEssential: false },
          body: {
            from: 'shop@two.example',
            to: 'ada@example.net',
            subject: 'Order',
            text: `Thanks ${FOOTER}`,
          },
          idempotency: null,
          envelope: () => '',
        }),
      );
      expect(setup.sentBy('acct_one').length - before).toBeLessThanOrEqual(2 * PORTION);
    }
    await rounds;
    expect(setup.sentBy('acct_one')).toHaveLength(8 * PORTION);
  });
});

describe('the definition of a sequence', () => {
  it('is refused while it could not be sent', async () => {
    const setup = await startSequences();
    const create = (steps: unknown[], trigger: object = { joined: setup.groupId }) =>
      setup.sequences.create(OWNER, { name: 'S', trigger, steps: steps as never, status: 'active' });
    const send = (changes: object) => ({ send: { ...message('One').send, ...changes } });
    const refused = async (...args: Parameters<typeof create>) => refusal(await create(...args));
    expect(await refused([])).toEqual(['VALIDATION_ERROR', ['steps']]);
    expect(await refused([{ wait: '1d' }])).toEqual(['VALIDATION_ERROR', ['steps']]);
    expect(await refused([send({ html: 'x' })])).toEqual([
      'COMPLIANCE_TEMPLATE_MISSING',
      ['unsubscribe_email_html', 'company_address_html'].toSorted(),
    ]);
    expect(await refused([send({ from: 'a@other.example' })])).toEqual([
      'DOMAIN_NOT_REGISTERED',
      ['steps[0].send.from'],
    ]);
    const restricted = { ...OWNER, allowFrom: ['other.example'] };
    const other = {
      name: 'S',
      trigger: { joined: setup.groupId },
      steps: [message('One')],
      status: 'active',
    } as const;
    expect(refusal(await setup.sequences.create(restricted, { ...other, steps: [...other.steps] }))).toEqual([
      'KEY_NOT_ALLOWED',
      ['steps[0].send.from'],
    ]);
    expect((await refused([message('{{event.total}}')]))[0]).toBe('TEMPLATE_VARIABLE_MISSING');
    expect((await refused([message('One')], { joined: 'sgroup_other' }))[0]).toBe(
      'SUBSCRIPTION_GROUP_NOT_FOUND',
    );
    expect(setup.tables.sequences.count('acct_one')).toBe(0);
  });
});
