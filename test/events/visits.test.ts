import { describe, expect, it } from 'vitest';
import { MINUTE } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { presentEvent } from '../../src/events/feed.ts';
import { createVisits, type TrackedVisit } from '../../src/events/visits.ts';
import { enqueue, startStore } from '../support/store.ts';

const PERSON = { ip: '192.0.2.7', userAgent: 'A browser', isBot: false, isProxy: false };
const SCANNER = { ip: '192.0.2.9', userAgent: 'A scanner', isBot: true, isProxy: true };

/** A store with one message, and the number of visits by kind and result. */
function start(options: { failing?: boolean } = {}) {
  const store = startStore();
  const { tables, writer, recorder, clock } = store;
  const message = enqueue(tables, clock.now());
  const results: Record<string, number> = {};
  const visits = createVisits(
    {
      clock,
      log: createLog({ level: 'silent', hashAddresses: true }),
      writer:
        options.failing === true ? { ...writer, run: () => Promise.reject(new Error('disk full')) } : writer,
    },
    {
      recorder,
      observe: (kind, result) => {
        results[`${kind} ${result}`] = (results[`${kind} ${result}`] ?? 0) + 1;
      },
    },
  );
  type Changes = Partial<Pick<TrackedVisit, 'messageId' | 'ip' | 'userAgent' | 'isBot' | 'isProxy'>>;
  const visit = (changes: Changes = {}): TrackedVisit => ({
    kind: 'email_opened',
    messageId: message.message_id,
    isOf: (accountId) => accountId === message.account_id,
    ...PERSON,
    ...changes,
  });
  const click = (changes: Changes & { url?: string } = {}): TrackedVisit => ({
    ...visit(changes),
    kind: 'email_clicked',
    url: changes.url ?? 'https://x.example/',
  });
  const events = () => tables.events.ofMessage(message.seq).map(presentEvent);
  return { ...store, message, visits, visit, click, events, results };
}

describe('visits', () => {
  it('are recorded as events with the client', async () => {
    const { visits, visit, click, events, message } = start();
    visits.record(visit());
    visits.record(click({ url: 'https://x.example/?a=1' }));
    await visits.close();
    expect(events()).toMatchObject([
      { event: 'email_opened', messageId: message.message_id, ...PERSON, isFirst: true },
      { event: 'email_clicked', url: 'https://x.example/?a=1', ...PERSON, isFirst: true },
    ]);
    expect(events()[0]).not.toHaveProperty('url');
  });

  it('mark the first of each kind, separately for people and programs', async () => {
    const { visits, visit, click, events } = start();
    for (const each of [
      visit(SCANNER),
      visit(),
      visit(),
      visit(SCANNER),
      click(),
      click({ url: 'https://y.example/' }),
      click(SCANNER),
    ]) {
      visits.record(each);
    }
    await visits.close();
    const seen = events().map((one) => {
      if (one.event !== 'email_opened' && one.event !== 'email_clicked') return expect.unreachable();
      return [one.event, one.isBot, one.isFirst];
    });
    expect(seen).toEqual([
      ['email_opened', true, true],
      ['email_opened', false, true],
      ['email_opened', false, false],
      ['email_opened', true, false],
      ['email_clicked', false, true],
      ['email_clicked', false, false],
      ['email_clicked', true, true],
    ]);
  });

  it('do not change the state of the message', async () => {
    const { visits, visit, tables, message } = start();
    visits.record(visit());
    await visits.close();
    expect(tables.messages.bySeq(message.seq)?.status).toBe('queued');
  });

  it('of a purged message are ignored', async () => {
    const { visits, visit, results } = start();
    visits.record(visit({ messageId: 'msg_1700000000000_abcdefghijkl' }));
    await visits.close();
    expect(results).toEqual({ 'email_opened ignored': 1 });
  });

  it('are recorded up to a limit, then once a minute, for each message and kind', async () => {
    const { visits, visit, click, results, clock } = start();
    for (let i = 0; i < 1000; i++) visits.record(visit());
    for (let i = 0; i < 200; i++) visits.record(click());
    await visits.close();
    expect(results).toEqual({
      'email_opened recorded': 20,
      'email_opened ignored': 980,
      'email_clicked recorded': 200,
    });
    clock.advance(2.5 * MINUTE);
    for (let i = 0; i < 10; i++) visits.record(visit());
    await visits.close();
    clock.advance(0.5 * MINUTE);
    for (let i = 0; i < 10; i++) visits.record(visit());
    await visits.close();
    expect(results['email_opened recorded']).toBe(23);
  });

  it('do not delay other units of work', async () => {
    const { visits, visit, click, writer, tables, clock, events } = start();
    const others = Array.from({ length: 50 }, () => enqueue(tables, clock.now()).message_id);
    for (const messageId of others) visits.record(visit({ messageId }));
    for (let i = 0; i < 300; i++) visits.record(click());
    let before = -1;
    await writer.run((tx) => {
      tx.settings.put('sent', 'yes');
      before = events().length;
    });
    await visits.close();
    expect(events()).toHaveLength(300);
    expect(before).toBeLessThan(150);
  });

  it('are lost when the database fails', async () => {
    const { visits, visit, results } = start({ failing: true });
    visits.record(visit());
    await visits.close();
    visits.record(visit());
    await visits.close();
    expect(results).toEqual({ 'email_opened lost': 2 });
  });
});
