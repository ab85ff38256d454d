import { describe, expect, it, onTestFinished } from 'vitest';
import { createSunset, type SunsetInput } from '../../../src/audience/hygiene/sunset.ts';
import { createStatusFollower } from '../../../src/audience/standing.ts';
import { DAY } from '../../../src/core/clock.ts';
import { createLog } from '../../../src/core/log.ts';
import { recordEngagement } from '../../../src/events/engagement.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import type { Unit } from '../../../src/store/database/writer.ts';
import type { Reader } from '../../../src/store/readers/reads.ts';
import { CALLER, message, OWNER, startSequences } from '../../campaigns/sequences/setup.ts';
import { granted } from '../../support/refusal.ts';
import { insertAccount } from '../../support/store.ts';

const RULE: SunsetInput = { enabled: true, months: 6, messages: 3, noticeDays: 30 };
const HALF_A_YEAR = 190 * DAY;

async function start() {
  const setup = await startSequences();
  const { clock, tables, writer } = setup;
  const log = createLog({ level: 'silent', hashAddresses: false });
  /** The parts of a process; `through` may end it. */
  const startProcess = (
    through: Pick<typeof writer, 'run' | 'isCrowded'> = writer,
    reader: Reader = setup.reader,
  ) => {
    const rules = createSunset(
      // Sound: the rule only runs units of work.
      { ...setup, log, reader, writer: through as typeof writer },
      { recorder: setup.recorder, onSuppressionChange: createStatusFollower(clock) },
    );
    onTestFinished(() => rules.stop());
    return rules;
  };
  const rules = startProcess();
  const seqOf = (name: string) =>
    tables.contacts.byIdentifier('acct_one', emailIdentifier(`${name}@example.net`))?.seq ?? 0;
  type Visit = { kind: 'email_opened' | 'email_clicked'; isBot: boolean };
  const happens = (name: string, event: { kind: 'email_delivered' } | Visit) =>
    recordEngagement(
      tables,
      {
        account_id: 'acct_one',
        recipient: `${name}@example.net`,
        recipient_hash: emailIdentifier(`${name}@example.net`),
        simulated: 0,
        use_case: 'mk',
        campaign_id: null,
      },
      // Sound: the engagement depends on these fields only.
      { kind: event.kind, fields: 'isBot' in event ? { isBot: event.isBot } : {} } as never,
      clock.now(),
    );
  /** Creates contacts that receive messages. */
  const receivers = async (names: readonly string[], messages = 3) => {
    for (const name of names) await setup.contact(`${name}@example.net`);
    for (const name of names) for (let n = 0; n < messages; n++) happens(name, { kind: 'email_delivered' });
  };
  const status = (name: string) => tables.contacts.bySeq(seqOf(name))?.global_status;
  const foundAt = (name: string) => tables.engagement.get(seqOf(name))?.sunset_at ?? null;
  const matching = async () => (await rules.get('acct_one')).matching;
  return { ...setup, rules, startProcess, seqOf, happens, receivers, status, foundAt, matching };
}

const many = (count: number) => Array.from({ length: count }, (_, n) => `user${n}`);

describe('the sunset rule', () => {
  it('is off, and counts whom it would find', async () => {
    const setup = await start();
    await setup.receivers(['ada', 'eve']);
    expect(await setup.rules.get('acct_one')).toMatchObject({ enabled: false, months: 12, matching: 0 });
    setup.clock.advance(HALF_A_YEAR);
    expect((await setup.rules.get('acct_one', { months: 6, messages: 3 })).matching).toBe(2);
    expect((await setup.rules.get('acct_one', { months: 6, messages: 4 })).matching).toBe(0);
    expect((await setup.rules.get('acct_one', { months: 7, messages: 3 })).matching).toBe(0);
    await setup.rules.put('acct_one', { ...RULE, enabled: false });
    await setup.rules.round();
    expect(setup.foundAt('ada')).toBeNull();
  });

  it('ends marketing mail some days after it has found a contact, as an opt-out with its own method', async () => {
    const setup = await start();
    await setup.receivers(['ada']);
    await setup.rules.put('acct_one', RULE);
    await setup.rules.round();
    expect(setup.foundAt('ada')).toBeNull();
    setup.clock.advance(HALF_A_YEAR);
    await setup.rules.round();
    expect([setup.foundAt('ada'), setup.status('ada')]).toEqual([setup.clock.now(), 'active']);
    setup.clock.advance(30 * DAY - 1);
    await setup.rules.round();
    expect(setup.status('ada')).toBe('active');
    setup.clock.advance(1);
    await setup.rules.round();
    expect(setup.status('ada')).toBe('unsubscribed');
    expect(setup.tables.consents.history(setup.seqOf('ada'), null, 1)[0]).toMatchObject({
      action: 'withdrawn',
      method: 'sunset',
      recorded_by: 'sunset rule',
    });
    const events = setup.db.prepare('SELECT count(*) AS n FROM events').get();
    expect(events).toEqual({ n: 1 });
    expect(await setup.rules.get('acct_one')).toMatchObject({ matching: 0, ended: 1, endedToday: 1 });
    // Repeated, it changes nothing.
    await setup.rules.round();
    expect(setup.db.prepare('SELECT count(*) AS n FROM events').get()).toEqual({ n: 1 });
  });

  it('does not find contacts that do something, automatic opens excepted', async () => {
    const setup = await start();
    const names = ['opened', 'clicked', 'bought', 'consented', 'automatic', 'paused'];
    await setup.receivers(names);
    setup.clock.advance(HALF_A_YEAR);
    await setup.rules.put('acct_one', RULE);
    setup.happens('opened', { kind: 'email_opened', isBot: false });
    setup.happens('clicked', { kind: 'email_clicked', isBot: false });
    setup.happens('automatic', { kind: 'email_opened', isBot: true });
    granted(
      await setup.sequences.recordEvent('acct_one', emailIdentifier('bought@example.net'), { name: 'order' }),
    );
    granted(
      await setup.audience.contacts.update(
        'acct_one',
        emailIdentifier('consented@example.net'),
        { consent: { method: 'web_form', details: 'again' } },
        { ...CALLER, merge: true },
      ),
    );
    const paused = setup.tables.contacts.bySeq(setup.seqOf('paused'));
    if (paused !== null) setup.tables.contacts.update({ ...paused, paused_until: setup.clock.now() + DAY });
    for (let day = 0; day < names.length; day++) {
      await setup.rules.round();
      setup.clock.advance(DAY);
    }
    expect(names.filter((name) => setup.foundAt(name) !== null)).toEqual(['automatic']);
    // Who does something after it was found is not touched.
    setup.happens('automatic', { kind: 'email_opened', isBot: false });
    setup.clock.advance(60 * DAY);
    await setup.rules.round();
    expect(setup.status('automatic')).toBe('active');
  });

  it('finds, and ends, one in twenty contacts on a day', async () => {
    const setup = await start();
    const names = many(60);
    await setup.receivers(names);
    setup.clock.advance(HALF_A_YEAR);
    await setup.rules.put('acct_one', { ...RULE, noticeDays: 0 });
    for (const expected of [3, 3, 6]) {
      await setup.rules.round();
      expect(names.filter((name) => setup.status(name) === 'unsubscribed')).toHaveLength(expected);
      if (expected === 3) setup.clock.advance(DAY / 4);
    }
    expect(await setup.rules.get('acct_one')).toMatchObject({ perDay: 3, ended: 6, endedToday: 3 });
  });

  it('triggers sequences with the event sunset, once for each finding', async () => {
    const setup = await start();
    await setup.receivers(['ada']);
    const row = await setup.active({ trigger: { event: 'sunset' }, steps: [message('Still interested?')] });
    setup.clock.advance(HALF_A_YEAR);
    await setup.rules.put('acct_one', RULE);
    for (let n = 0; n < 2; n++) {
      await setup.rules.round();
      await setup.run();
    }
    expect(setup.sent()).toEqual(['ada@example.net Still interested?']);
    granted(await setup.sequences.pause(OWNER, row.sequence_id));
  });

  it('gives notice again after it was off, and does nothing while it is', async () => {
    const setup = await start();
    await setup.receivers(['ada']);
    setup.clock.advance(HALF_A_YEAR);
    await setup.rules.put('acct_one', RULE);
    await setup.rules.round();
    const first = setup.foundAt('ada');
    await setup.rules.put('acct_one', { ...RULE, enabled: false });
    setup.clock.advance(60 * DAY);
    await setup.rules.round();
    expect(setup.status('ada')).toBe('active');
    await setup.rules.put('acct_one', RULE);
    await setup.rules.round();
    expect(setup.foundAt('ada')).toBe(setup.clock.now());
    expect(setup.foundAt('ada')).not.toBe(first);
    expect(setup.status('ada')).toBe('active');
  });

  it('is applied in an account although that of another account fails', async () => {
    const setup = await start();
    insertAccount(setup.tables, 'acct_before', setup.clock.now());
    await setup.receivers(many(20));
    setup.clock.advance(HALF_A_YEAR);
    for (const account of ['acct_before', 'acct_one']) await setup.rules.put(account, RULE);
    const { query, ...reader } = setup.reader;
    const failing: Reader = {
      ...reader,
      query: async (accountId, ...given) => {
        if (accountId === 'acct_before') throw new Error('the read failed');
        return query(accountId, ...given);
      },
    };
    await setup.startProcess(setup.writer, failing).round();
    expect(await setup.rules.get('acct_one')).toMatchObject({ noticedToday: 1 });
  });

  it('continues after a crash at any unit of work, with exact counts', async () => {
    const setup = await start();
    const names = many(200);
    await setup.receivers(names);
    setup.clock.advance(HALF_A_YEAR);
    await setup.rules.put('acct_one', { ...RULE, noticeDays: 0 });
    for (let crash = 0; crash < 6; crash++) {
      let units = 0;
      const { writer } = setup;
      const run = <Value>(unit: Unit<Value>, share?: string) => {
        units++;
        if (units > 2) throw new Error('killed before the unit');
        return writer.run((tx) => {
          const value = unit(tx);
          if (units === 2 && crash % 2 === 1) throw new Error('killed before the commit');
          return value;
        }, share);
      };
      const process = setup.startProcess({ run, isCrowded: writer.isCrowded });
      await process.round().catch(() => null);
    }
    await setup.startProcess().round();
    expect(names.filter((name) => setup.status(name) === 'unsubscribed')).toHaveLength(10);
    expect(setup.db.prepare('SELECT count(*) AS n FROM events').get()).toEqual({ n: 10 });
    expect(await setup.rules.get('acct_one')).toMatchObject({ ended: 10, endedToday: 10, noticedToday: 10 });
  });
});
