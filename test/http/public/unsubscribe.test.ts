import { describe, expect, it } from 'vitest';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import type { SentMail } from '../../../src/mail/sent-mail.ts';
import { insertAccount } from '../../support/store.ts';
import { BROWSER, FORM, ONE_CLICK, type PublicRig, startPublic } from './rig.ts';

const path = ({ tokens }: PublicRig, mail: SentMail) => `/u/${tokens.of('acct_one').unsubscribeUrl(mail)}`;
const post = (rig: PublicRig, mail: SentMail, body: string) =>
  rig.call(path(rig, mail), { method: 'POST', headers: FORM, body });

const BOUNDARY = '----WebKitFormBoundary7MA4YWxkTrZu0gW';
const multipart = (text: string) => ({
  method: 'POST',
  headers: { 'Content-Type': `multipart/form-data; boundary=${BOUNDARY}` },
  body: text,
});
const PART = 'Content-Disposition: form-data; name="List-Unsubscribe"';

describe('a link that a mail client changed', () => {
  const percent = (char: string) => `%${char.charCodeAt(0).toString(16)}`;
  it.each<[string, (path: string) => string]>([
    ['percent-encodes the first character', (link) => link.replace(/(?<=^\/u\/)./, percent)],
    [
      'percent-encodes every letter',
      (link) => link.replace(/(?<=^\/u\/).*$/, (t) => t.replaceAll(/[a-z]/g, percent)),
    ],
    ...['.', ')', '>', ']', '/', '%5D', '%3E', '%20', ').', '%22'].map(
      (added): [string, (path: string) => string] => [`ends with ${added}`, (link) => link + added],
    ),
  ])('unsubscribes where it %s', async (_, change) => {
    const rig = await startPublic();
    const { mail } = rig.sent({ use_case: 'mk' });
    const { status } = await rig.call(change(path(rig, mail)), ONE_CLICK);
    expect(status).toBe(200);
    expect(rig.suppressions(mail)).toEqual(['unsubscribe mk']);
  });

  it('is unknown where its token is another', async () => {
    const rig = await startPublic();
    const { mail } = rig.sent({ use_case: 'mk' });
    for (const added of ['x', '%2Fx', '/x', '%00']) {
      const { status } = await rig.call(path(rig, mail) + added, ONE_CLICK);
      expect([404, 405], added).toContain(status);
    }
    expect(rig.suppressions(mail)).toEqual([]);
  });
});

describe('one click', () => {
  it.each([
    ['as a form', ONE_CLICK],
    [
      'as a form with a character set',
      { ...ONE_CLICK, headers: { 'Content-Type': 'application/x-www-form-urlencoded; charset=UTF-8' } },
    ],
    ['without a type', { ...ONE_CLICK, headers: {} }],
    ['in other letter case', { ...ONE_CLICK, body: 'list-unsubscribe=ONE-CLICK\r\n' }],
    ['in parts', multipart(`--${BOUNDARY}\r\n${PART}\r\n\r\nOne-Click\r\n--${BOUNDARY}--\r\n`)],
    ['in parts with bare line feeds', multipart(`--${BOUNDARY}\n${PART}\n\nOne-Click\n--${BOUNDARY}--\n`)],
    [
      'in parts among others',
      multipart(
        `preamble\r\n--${BOUNDARY}\r\nContent-Disposition: form-data; name=x\r\n\r\n1\r\n--${BOUNDARY}\r\n${PART}\r\nContent-Type: text/plain\r\n\r\nOne-Click\r\n--${BOUNDARY}--`,
      ),
    ],
    [
      'in parts with a quoted boundary',
      {
        ...multipart(`--a b\r\n${PART}\r\n\r\nOne-Click\r\n--a b--\r\n`),
        headers: { 'Content-Type': 'multipart/form-data; boundary="a b"' },
      },
    ],
  ])('%s unsubscribes immediately', async (_, request) => {
    const rig = await startPublic();
    const { message, mail } = rig.sent({ use_case: 'mk' });
    const { status, headers } = await rig.call(path(rig, mail), request);
    expect([status, headers['location'], headers['set-cookie']]).toEqual([200, undefined, undefined]);
    expect(rig.suppressions(mail)).toEqual(['unsubscribe mk']);
    expect(rig.events()).toMatchObject([
      {
        event: 'email_unsubscribed',
        method: 'one_click',
        scope: 'marketing',
        messageId: message.message_id,
        ip: '127.0.0.1',
        userAgent: BROWSER,
      },
    ]);
  });

  it('changes nothing and causes no event when it is repeated', async () => {
    const rig = await startPublic();
    const { mail } = rig.sent({ use_case: 'mk' });
    for (let n = 0; n < 3; n++) expect((await rig.call(path(rig, mail), ONE_CLICK)).status).toBe(200);
    expect(rig.suppressions(mail)).toEqual(['unsubscribe mk']);
    expect(rig.events()).toHaveLength(1);
  });

  it.each([
    ['nothing', ''],
    ['another word', 'List-Unsubscribe=Two-Clicks'],
    ['another name', 'Unsubscribe=One-Click'],
    ['an unknown choice', 'choice=everybody'],
    ['an unknown value to undo', 'undo=everything'],
  ])('is not %s: the response is the page', async (_, body) => {
    const rig = await startPublic();
    const { mail } = rig.sent({ use_case: 'mk' });
    const answer = await post(rig, mail, body);
    expect(answer.status).toBe(400);
    expect(answer.body).toContain('<button type="submit">Unsubscribe</button>');
    expect(rig.suppressions(mail)).toEqual([]);
  });
});

describe('the page', () => {
  it.each(['GET', 'HEAD'])('changes nothing for %s: scanners follow links', async (method) => {
    const rig = await startPublic();
    const { mail } = rig.sent({ use_case: 'mk' });
    for (let n = 0; n < 3; n++) expect((await rig.call(path(rig, mail), { method })).status).toBe(200);
    expect(rig.suppressions(mail)).toEqual([]);
    expect(rig.events()).toEqual([]);
  });

  it('names the company, and masks the recipient', async () => {
    const rig = await startPublic();
    const { body } = await rig.call(path(rig, rig.sent({ recipient: 'ada.lovelace@example.net' }).mail));
    expect(body).toContain('<bdi>Example Ltd</bdi>');
    expect(body).toContain('<bdi class="whole">a…@example.net</bdi>');
    expect(body).not.toContain('lovelace');
  });

  it('escapes names', async () => {
    const rig = await startPublic();
    const account = rig.tables.accounts.get('acct_one');
    if (account) rig.tables.accounts.update({ ...account, company_name: '<img src=x>"&\'' });
    const groupId = rig.group('<script>alert(1)</script>');
    const { body } = await rig.call(
      path(rig, rig.sent({ use_case: 'mk', subscription_group_id: groupId }).mail),
    );
    expect(body).toContain('<bdi>&lt;img src=x&gt;&quot;&amp;&#39;</bdi>');
    expect(body).toContain('&lt;script&gt;');
    expect(body).not.toMatch(/<script|<img/);
  });

  it('has one button, with a choice for mail to a list', async () => {
    const rig = await startPublic();
    const groupId = rig.group('Winter news');
    const { mail } = rig.sent({ use_case: 'mk', subscription_group_id: groupId });
    const { body } = await rig.call(path(rig, mail));
    expect(body.match(/<button/g)).toHaveLength(1);
    expect(body).toMatch(/value="list" checked>.*Only this list: <b><bdi>Winter news<\/bdi><\/b>/);
    expect(body).toMatch(/value="all">.*All marketing mail from <bdi>Example Ltd<\/bdi>/);
  });

  it('has no choice without a list', async () => {
    const rig = await startPublic();
    const { body } = await rig.call(path(rig, rig.sent({ use_case: 'mk' }).mail));
    expect(body).not.toContain('type="radio"');
    expect(body).toContain('You will no longer get marketing mail.');
  });

  it('unsubscribes, and undoes it', async () => {
    const rig = await startPublic();
    const groupId = rig.group('Winter news');
    const { mail } = rig.sent({ use_case: 'mk', subscription_group_id: groupId });
    const stopped = await post(rig, mail, 'choice=list');
    expect(stopped.body).toContain('You are unsubscribed');
    expect(stopped.body).toContain('<li>the list <b><bdi>Winter news</bdi></b></li>');
    expect(stopped.body).toContain('name="undo" value="group"');
    expect((await rig.call(path(rig, mail))).body).toContain('You are unsubscribed');

    const all = await post(rig, mail, 'choice=all');
    expect(all.body).toContain('name="undo" value="mk"');
    expect(rig.suppressions(mail)).toEqual(['unsubscribe mk']);

    expect((await post(rig, mail, 'undo=mk')).body).toContain('You are subscribed again');
    expect(rig.suppressions(mail)).toEqual([]);
    expect((await rig.call(path(rig, mail))).body).toContain('the list <b>');
    await post(rig, mail, 'undo=group+mk');
    expect((await rig.call(path(rig, mail))).body).toContain('What do you want to stop?');
    expect(rig.events()).toMatchObject([
      { event: 'email_unsubscribed', method: 'page', scope: 'group' },
      { event: 'email_unsubscribed', method: 'page', scope: 'marketing' },
    ]);
  });

  it('stops one stream or both, from transactional mail', async () => {
    const rig = await startPublic();
    const { mail } = rig.sent();
    await post(rig, mail, 'choice=list');
    expect(rig.suppressions(mail)).toEqual(['unsubscribe tx']);
    const both = await post(rig, mail, 'choice=all');
    expect(rig.suppressions(mail)).toEqual(['unsubscribe tx', 'unsubscribe mk']);
    // Undo applies only to the stream that this request stopped.
    expect(both.body).toContain('name="undo" value="mk"');
  });

  it('offers an opt-out from transactional mail, also after a marketing opt-out', async () => {
    const rig = await startPublic();
    await post(rig, rig.sent({ use_case: 'mk' }).mail, 'choice=list');
    const { mail } = rig.sent();
    expect((await rig.call(path(rig, mail))).body).toContain('What do you want to stop?');
    await post(rig, mail, 'undo=tx');
    expect(rig.suppressions(mail)).toEqual(['unsubscribe mk']);
  });

  it('works for a purged mail, by its recipient', async () => {
    const rig = await startPublic();
    const { mail } = rig.sent({ use_case: 'mk' });
    const purged = { ...mail, messageId: 'msg_1500000000000_abcdefghijkl' };
    const { body } = await rig.call(path(rig, purged), ONE_CLICK);
    expect(body).toContain('to you:');
    expect(rig.suppressions(mail)).toEqual(['unsubscribe mk']);
    expect(rig.events()).toMatchObject([
      {
        event: 'email_unsubscribed',
        method: 'one_click',
        contactIdentifier: mail.recipientHash,
        useCase: 'mk',
      },
    ]);
  });

  it('changes nothing for simulated mail', async () => {
    const rig = await startPublic();
    const { mail } = rig.sent({ use_case: 'mk', simulated: 1 });
    expect((await rig.call(path(rig, mail), ONE_CLICK)).status).toBe(200);
    expect(rig.suppressions(mail)).toEqual([]);
    expect(rig.events()).toEqual([]);
  });
});

describe('an invalid token', () => {
  it('changes nothing and gets the error page', async () => {
    const rig = await startPublic();
    insertAccount(rig.tables, 'acct_two', rig.clock.now());
    const ada = rig.sent({ use_case: 'mk' });
    const bob = rig.sent({ use_case: 'mk', recipient: 'bob@example.net', account_id: 'acct_two' });
    const good = rig.tokens.of('acct_one').unsubscribeUrl(ada.mail);
    const other = rig.tokens.of('acct_one').unsubscribeUrl(bob.mail);
    const wrong = [
      good.slice(0, -1),
      `${good}A`,
      `${good.slice(0, 40)}${other.slice(40)}`,
      `${other.slice(0, 60)}${good.slice(60)}`,
      good.slice(0, 20) + (good[20] === 'A' ? 'B' : 'A') + good.slice(21),
      rig.tokens.of('acct_one').reportUrl(ada.mail),
      rig.tokens.of('acct_one').openUrl(ada.message.message_id),
      rig.tokens.of('acct_one').unsubscribe(ada.message.message_id),
      emailIdentifier('ada@example.net'),
      ada.message.message_id,
    ];
    for (const token of wrong) {
      for (const request of [{}, ONE_CLICK, { method: 'POST', headers: FORM, body: 'choice=all' }]) {
        const answer = await rig.call(`/u/${token}`, request);
        expect([token, answer.status]).toEqual([token, 404]);
        expect(answer.body).toContain('This link does not work');
      }
    }
    expect([...rig.suppressions(ada.mail), ...rig.suppressions(bob.mail)]).toEqual([]);
    expect([...rig.events(), ...rig.events('acct_two')]).toEqual([]);
  });

  it('affects its recipient and account only', async () => {
    const rig = await startPublic();
    insertAccount(rig.tables, 'acct_two', rig.clock.now());
    const { mail } = rig.sent({ use_case: 'mk' });
    await rig.call(path(rig, mail), ONE_CLICK);
    expect(rig.suppressions({ ...mail, accountId: 'acct_two' })).toEqual([]);
    expect(rig.suppressions({ ...mail, recipientHash: emailIdentifier('bob@example.net') })).toEqual([]);
    expect(rig.suppressions(mail)).toEqual(['unsubscribe mk']);
  });
});

describe('undoing opt-outs repeatedly', () => {
  it('is limited to ten times an hour; an opt-out still succeeds', async () => {
    const rig = await startPublic();
    const { mail } = rig.sent({ use_case: 'mk' });
    const statuses: number[] = [];
    for (let n = 0; n < 30; n++) {
      expect((await rig.call(path(rig, mail), ONE_CLICK)).status).toBe(200);
      statuses.push((await post(rig, mail, 'undo=mk')).status);
    }
    expect(statuses).toEqual([...Array(10).fill(200), ...Array(20).fill(429)]);
    expect(rig.events()).toHaveLength(11);
    expect(rig.suppressions(mail)).toEqual(['unsubscribe mk']);

    // Another mail to the same person has another token, and the same limit.
    const second = rig.sent({ use_case: 'mk' }).mail;
    const refused = await post(rig, second, 'undo=mk');
    expect(refused.status).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    rig.clock.advance(Number(refused.headers['retry-after']) * 1000);
    expect((await post(rig, second, 'undo=mk')).status).toBe(200);
  });
});
