import { simpleParser } from 'mailparser';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { readProgramFile } from '../../src/config/program-file.ts';
import { DAY, HOUR, MINUTE } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import type { DirectResult } from '../../src/delivery/direct-mail.ts';
import type { OutgoingMessage } from '../../src/delivery/worker/transaction.ts';
import { createFailureNotices } from '../../src/notices/failure-notices.ts';
import { createPeople } from '../../src/people/people.ts';
import { createLocalReader } from '../../src/store/readers/reads.ts';
import type { SendingLimitRow } from '../../src/store/sending-limits.ts';
import { granted } from '../support/refusal.ts';
import { limitRow } from '../support/sending-limits.ts';
import { heldClock, insertDomain, startStore } from '../support/store.ts';

/* Mail about failures, over a database with a held clock; what would be sent is kept. */

interface Sent {
  to: string;
  subject: string;
  text: string;
}

async function start() {
  const store = startStore(heldClock());
  const { tables, writer, clock, ids, dir } = store;
  const config = loadConfig({
    cwd: dir,
    file: null,
    env: { POSTRIDER_HOSTNAME: 'mail.postrider.test', POSTRIDER_CONSOLE__URL: 'https://console.test' },
  });
  const people = createPeople({ tables, writer, clock, ids });
  const sent: Sent[] = [];
  const raw: OutgoingMessage[] = [];
  let result: DirectResult = { kind: 'accepted' };
  const log = createLog({ level: 'silent', hashAddresses: false });
  const create = () =>
    createFailureNotices(
      { config, clock, log, ids, tables, reader: createLocalReader(tables), writer },
      {
        mail: {
          deliver: async (message) => {
            raw.push(message);
            const { subject = '', text = '' } = await simpleParser(
              Buffer.concat([message.header, message.body]),
            );
            if (result.kind === 'accepted') sent.push({ to: message.to, subject, text });
            return result;
          },
          close: async () => {},
        },
      },
    );
  let notices = create();
  const owner = async (email: string) =>
    granted(await people.invite('acct_one', { email, role: 'owner' }, 'operator')).person;
  const hook = (failing_since: number | null, name = 'CRM sync') =>
    tables.webhooks.insert({
      webhook_id: `webhook_${name}`,
      account_id: 'acct_one',
      name,
      description: null,
      url: 'https://crm.test/secret',
      events: '["*"]',
      format: 'postrider',
      filter: null,
      headers: null,
      is_active: 1,
      off_reason: null,
      failing_since,
      created_at: clock.now(),
      updated_at: clock.now(),
    });
  return {
    ...store,
    config,
    people,
    sent,
    raw,
    owner,
    hook,
    run: () => notices.run(),
    /** Another process with the same database. */
    restart: async () => {
      notices = create();
      notices.start();
      await notices.stop();
      await writer.run(() => {});
    },
    respond: (next: DirectResult) => {
      result = next;
    },
  };
}

/** A first owner, and a webhook that has failed for long enough. */
async function withFailure() {
  const test = await start();
  const { id: personId } = await test.owner('ada@example.test');
  const number = test.hook(test.clock.now());
  test.clock.advance(15 * MINUTE);
  return { ...test, number, personId };
}

const REFUSED = { kind: 'refused', reason: '451 try later', isPermanent: false } as const;

describe('mail about a failure', () => {
  it('reaches every owner once, with the way to the page, and again when it works again', async () => {
    const { run, sent, owner, people, clock, tables, number, raw } = await withFailure();
    await owner('grace@example.test');
    granted(await people.invite('acct_one', { email: 'dev@example.test', role: 'developer' }, 'operator'));
    await run();
    expect(sent.map(({ to }) => to).toSorted()).toEqual(['ada@example.test', 'grace@example.test']);
    expect(sent[0]).toMatchObject({
      subject: '[Postrider] Webhook CRM sync of acct_one fails',
      text: expect.stringContaining(
        'https://console.test/console/webhooks/webhook_CRM%20sync?account=acct_one',
      ),
    });
    expect(sent[0]?.text).not.toContain('secret');
    expect(raw[0]?.from).toBe('postmaster@mail.postrider.test');
    expect(raw[0]?.header.toString()).toContain('Auto-Submitted: auto-generated');
    clock.advance(HOUR);
    await run();
    expect(sent).toHaveLength(2);
    tables.webhooks.setFailingSince(number, null);
    await run();
    expect(sent.slice(2).map(({ subject }) => subject)).toEqual([
      '[Postrider] Webhook CRM sync of acct_one works again',
      '[Postrider] Webhook CRM sync of acct_one works again',
    ]);
  });

  it('is not sent while the failure is short', async () => {
    const { run, sent, owner, hook, clock, tables } = await start();
    await owner('ada@example.test');
    const number = hook(clock.now());
    clock.advance(15 * MINUTE - 1);
    await run();
    tables.webhooks.setFailingSince(number, null);
    clock.advance(HOUR);
    await run();
    expect(sent).toEqual([]);
  });

  it('is not sent about what has failed for days', async () => {
    const { run, sent, owner, hook, clock } = await start();
    await owner('ada@example.test');
    hook(clock.now());
    clock.advance(3 * DAY);
    await run();
    expect(sent).toEqual([]);
  });

  it('is sent once a day about a webhook that fails again and again', async () => {
    const { run, sent, clock, tables, number } = await withFailure();
    for (let hour = 0; hour < 23; hour++) {
      await run();
      tables.webhooks.setFailingSince(number, null);
      await run();
      tables.webhooks.setFailingSince(number, clock.now());
      clock.advance(HOUR);
    }
    expect(sent.map(({ subject }) => /fails|works again/.exec(subject)?.[0])).toEqual([
      'fails',
      'works again',
    ]);
    clock.advance(HOUR);
    await run();
    expect(sent).toHaveLength(3);
  });

  it('names all that fails in the account, each domain and webhook', async () => {
    const { run, sent, hook, owner, tables, clock } = await start();
    await owner('ada@example.test');
    insertDomain(
      tables,
      {
        account_id: 'acct_one',
        domain_id: 'domain_1',
        name: 'shop.test',
        status: 'TEMPORARY_FAILURE',
        failing_since: clock.now(),
      },
      clock.now(),
    );
    for (let n = 0; n < 25; n++) hook(clock.now(), `Hook ${n}`);
    clock.advance(HOUR);
    await run();
    expect(sent.map(({ subject }) => subject)).toEqual(['[Postrider] 26 failures in acct_one']);
    expect(sent[0]?.text).toContain('Domain shop.test');
    expect(sent[0]?.text).toContain('and 6 more');
  });

  it('is in the language of the person', async () => {
    const { run, sent, people, tables } = await withFailure();
    const [ada] = people.members('acct_one');
    await people.update(ada?.id ?? '', { language: 'de' });
    expect(tables.people.get(ada?.id ?? '')?.language).toBe('de');
    await run();
    expect(sent[0]?.subject).toBe('[Postrider] Webhook CRM sync von acct_one ist gestört');
  });

  it('is not sent to who turned it off, nor while the operator has turned it off', async () => {
    const { run, sent, people, config, owner } = await withFailure();
    const [ada] = people.members('acct_one');
    await people.update(ada?.id ?? '', { failureMail: false });
    config.console.failureMail = false;
    await owner('grace@example.test');
    await run();
    expect(sent).toEqual([]);
    config.console.failureMail = true;
    await run();
    expect(sent.map(({ to }) => to)).toEqual(['grace@example.test']);
  });

  it('names a limit of sending once for each time it begins, and its end if nobody ended it', async () => {
    const { run, sent, owner, people, tables, clock } = await start();
    const ada = await owner('ada@example.test');
    await people.update(ada.id, { language: 'fr' });
    await owner('grace@example.test');
    insertDomain(tables, { account_id: 'acct_one', domain_id: 'domain_mk', name: 'shop.test' }, clock.now());
    const limit = (changes: Partial<SendingLimitRow>) =>
      tables.sendingLimits.put(
        limitRow({
          domain_id: 'domain_mk',
          provider: 'Google',
          level: 'slow',
          since: clock.now(),
          ...changes,
        }),
      );
    const subjects = () =>
      sent
        .splice(0)
        .map(({ to, subject }) => `${to}: ${subject}`)
        .toSorted();
    limit({ level: 'notice' });
    await run();
    expect(sent).toEqual([]);
    limit({});
    await run();
    const { text } = sent.find(({ to }) => to === 'grace@example.test') ?? expect.unreachable();
    expect(text).toContain('7 % of 1000 messages bounced because their addresses do not exist (limit: 5 %)');
    expect(text).toContain('https://console.test/console/reputation?account=acct_one');
    expect(subjects()).toEqual([
      'ada@example.test: [Postrider] Courrier marketing de shop.test → Google : envoi ralenti automatiquement',
      'grace@example.test: [Postrider] Marketing mail of shop.test → Google is slowed automatically',
    ]);
    // The same episode.
    limit({ level: 'pause', since: clock.now() + 1 });
    await run();
    clock.advance(HOUR);
    limit({ level: null, since: clock.now() });
    await run();
    await run();
    expect(subjects()[1]).toBe(
      'grace@example.test: [Postrider] Marketing mail of shop.test → Google is sent normally again',
    );

    clock.advance(DAY);
    await run();
    limit({ level: 'pause', since: clock.now() });
    await run();
    expect(subjects()[1]).toBe(
      'grace@example.test: [Postrider] Marketing mail of shop.test → Google is stopped automatically',
    );
    limit({ level: null, since: clock.now(), counts_from: clock.now() });
    await run();
    expect(sent).toEqual([]);
  });

  it('does not follow when a person has removed or disabled the cause', async () => {
    const { run, sent, tables, number } = await withFailure();
    await run();
    tables.webhooks.remove(number);
    await run();
    expect(sent).toHaveLength(1);
    expect(tables.failureNotices.list(9)).toEqual([]);
  });
});

describe('the delivery', () => {
  it('is tried again after a refusal, also after a restart, and sent once', async () => {
    const { run, sent, respond, restart, clock, raw } = await withFailure();
    respond(REFUSED);
    await run();
    await restart();
    await run();
    expect(raw).toHaveLength(1);
    respond({ kind: 'accepted' });
    clock.advance(5 * MINUTE);
    await run();
    await restart();
    clock.advance(HOUR);
    await run();
    expect(sent).toHaveLength(1);
    expect(raw[1]?.header.toString()).toBe(raw[0]?.header.toString());
  });

  it('is not repeated after a restart when its result is not known', async () => {
    const { run, respond, restart, clock, raw, tables, personId } = await withFailure();
    respond({ kind: 'aborted' });
    await run();
    expect(tables.noticeMails.countOf(personId)).toBe(1);
    await restart();
    clock.advance(HOUR);
    await run();
    expect(raw).toHaveLength(1);
    expect(tables.noticeMails.countOf(personId)).toBe(0);
  });

  it('ends after a permanent refusal, and after a day', async () => {
    const { run, respond, clock, raw, tables, personId } = await withFailure();
    respond(REFUSED);
    for (let hour = 0; hour < 30; hour++) {
      await run();
      clock.advance(HOUR);
    }
    expect(tables.noticeMails.countOf(personId)).toBe(0);
    expect(raw.length).toBeGreaterThan(5);
    expect(raw.length).toBeLessThan(15);
  });

  it('waits for a person whose server refuses it only ten times', async () => {
    const { run, respond, hook, clock, tables, personId } = await withFailure();
    respond(REFUSED);
    for (let number = 0; number < 15; number++) {
      await run();
      hook(clock.now() - 15 * MINUTE, `hook ${number}`);
    }
    expect(tables.noticeMails.countOf(personId)).toBe(10);
  });

  it('notices a failure however many others have failed for long, or are known', async () => {
    const { run, hook, clock, tables } = await withFailure();
    for (let number = 0; number < 1100; number++) hook(clock.now() - 3 * DAY, `old ${number}`);
    await run();
    for (let number = 0; number < 1100; number++) hook(clock.now() - HOUR, `new ${number}`);
    await run();
    hook(clock.now() - HOUR, 'last');
    await run();
    await run();
    const noticed = tables.failureNotices.list(5000).map(({ cause_id }) => cause_id);
    expect(noticed).toHaveLength(1102);
    expect(noticed).toContain('webhook_last');
  });
});

describe('the texts', () => {
  it('have the same names, and the same values to fill in, in each language', () => {
    const languages = Object.entries(readProgramFile('failure-notices.toml') as Record<string, object>);
    const form = (texts: object): [string, unknown][] =>
      Object.entries(texts)
        .map(([name, text]): [string, unknown] => [
          name,
          typeof text === 'string' ? text.match(/\{\w+\}/g)?.toSorted() : form(text),
        ])
        .toSorted(([one], [other]) => one.localeCompare(other));
    expect(languages.map(([language]) => language)).toEqual(['en', 'de', 'fr']);
    const [english] = languages.map(([, texts]) => form(texts));
    for (const [language, texts] of languages) expect(form(texts), language).toEqual(english);
    expect(english?.map(([name]) => name)).toEqual([
      'again',
      'consequence',
      'domain',
      'failing',
      'fails',
      'level',
      'limit',
      'limited',
      'more',
      'reason',
      'several',
      'since',
      'unlimited',
      'webhook',
      'why',
      'worksAgain',
    ]);
  });
});
