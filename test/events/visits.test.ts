import { describe, expect, it } from 'vitest';
import { MINUTE } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { publicEvent } from '../../src/events/feed.ts';
import { createVisits, type Visit } from '../../src/events/visits.ts';
import { enqueue, startStore } from '../support/store.ts';

const PERSON = { ip: '192.0.2.7', userAgent: 'A browser', isBot: false, isProxy: false };
const SCANNER = { ip: '192.0.2.9', userAgent: 'A scanner', isBot: true, isProxy: true };

/** A store with one message in it, and what becomes of visits to that. */
function start(options: { failing?: boolean } = {}) {
  const store = startStore();
  const { tables, writer, recorder, clock } = store;
  const message = enqueue(tables, clock.now());
  const fates: Record<string, number> = {};
  const visits = createVisits({
    clock,
    log: createLog({ level: 'silent', hashAddresses: true }),
    writer:
      options.failing === true ? { ...writer, run: () => Promise.reject(new Error('disk full')) } : writer,
    recorder,
    observe: (kind, fate) => {
      fates[`${kind} ${fate}`] = (fates[`${kind} ${fate}`] ?? 0) + 1;
    },
  });
  const visit = (changes: Partial<Visit> = {}): Visit => ({
    kind: 'email_opened',
    messageId: message.message_id,
    url: null,
    ...PERSON,
    ...changes,
  });
  const click = (changes: Partial<Visit> = {}) =>
    visit({ kind: 'email_clicked', url: 'https://x.example/', ...changes });
  const events = () => tables.events.ofMessage(message.seq).map(publicEvent);
  return { ...store, message, visits, visit, click, events, fates };
}

describe('visits', () => {
  it('become events with who came and how', async () => {
    const { visits, visit, click, events, message } = start();
    visits.note(visit());
    visits.note(click({ url: 'https://x.example/?a=1' }));
    await visits.close();
    expect(events()).toMatchObject([
      { event: 'email_opened', messageId: message.message_id, ...PERSON, isFirst: true },
      { event: 'email_clicked', url: 'https://x.example/?a=1', ...PERSON, isFirst: true },
    ]);
    expect(events()[0]).not.toHaveProperty('url');
  });

  it('tell the first of each kind, by people and by machines apart', async () => {
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
      visits.note(each);
    }
    await visits.close();
    expect(events().map(({ event, isBot, isFirst }) => [event, isBot, isFirst])).toEqual([
      ['email_opened', true, true],
      ['email_opened', false, true],
      ['email_opened', false, false],
      ['email_opened', true, false],
      ['email_clicked', false, true],
      ['email_clicked', false, false],
      ['email_clicked', true, true],
    ]);
  });

  it('leave the state of the message as it is', async () => {
    const { visits, visit, tables, message } = start();
    visits.note(visit());
    await visits.close();
    expect(tables.messages.bySeq(message.seq)?.status).toBe('queued');
  });

  it('to a message that was purged are no events', async () => {
    const { visits, visit, fates } = start();
    visits.note(visit({ messageId: 'msg_1700000000000_abcdefghijkl' }));
    await visits.close();
    expect(fates).toEqual({ 'email_opened ignored': 1 });
  });

  it('are recorded as they come up to a bound, then once a minute, for each message and kind', async () => {
    const { visits, visit, click, fates, clock } = start();
    for (let i = 0; i < 1000; i++) visits.note(visit());
    for (let i = 0; i < 200; i++) visits.note(click());
    await visits.close();
    expect(fates).toEqual({
      'email_opened recorded': 20,
      'email_opened ignored': 980,
      'email_clicked recorded': 200,
    });
    clock.advance(2.5 * MINUTE);
    for (let i = 0; i < 10; i++) visits.note(visit());
    await visits.close();
    clock.advance(0.5 * MINUTE);
    for (let i = 0; i < 10; i++) visits.note(visit());
    await visits.close();
    expect(fates['email_opened recorded']).toBe(23);
  });

  it('share commits with what else is written, and hold up nothing', async () => {
    const { visits, visit, click, writer, tables, clock, events } = start();
    const others = Array.from({ length: 50 }, () => enqueue(tables, clock.now()).message_id);
    for (const messageId of others) visits.note(visit({ messageId }));
    for (let i = 0; i < 300; i++) visits.note(click());
    let before = -1;
    await writer.run((all) => {
      all.settings.put('sent', 'yes');
      before = events().length;
    });
    await visits.close();
    expect(events()).toHaveLength(300);
    expect(before).toBeLessThan(150);
  });

  it('are lost with a word in the log when the database cannot take them, and the next ones are not', async () => {
    const { visits, visit, fates } = start({ failing: true });
    visits.note(visit());
    await visits.close();
    visits.note(visit());
    await visits.close();
    expect(fates).toEqual({ 'email_opened lost': 2 });
  });
});
