import { describe, expect, it } from 'vitest';
import { createPublicPageSettings } from '../../../src/accounts/public-pages.ts';
import { marketingIneligibility } from '../../../src/audience/eligibility.ts';
import { createPauses } from '../../../src/audience/pauses.ts';
import { addPerson } from '../../../src/audience/people.ts';
import type { ProfileChanges } from '../../../src/audience/profile.ts';
import { DAY } from '../../../src/core/clock.ts';
import { createLog } from '../../../src/core/log.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import { eventually } from '../../support/eventually.ts';
import { granted } from '../../support/refusal.ts';
import { FORM, startPublic } from './rig.ts';

const ADA = 'ada@example.net';
const HASH = emailIdentifier(ADA);

/** The public pages, a contact, and a marketing mail to the first of two public groups. */
async function start(profile: ProfileChanges = {}) {
  const rig = await startPublic();
  const { tables, writer, clock } = rig;
  const [news, offers, hidden] = ['News', 'Offers', 'Staff'].map((name) => rig.group(name));
  if (news === undefined || offers === undefined || hidden === undefined) throw new Error('no groups');
  const setPublic = (id: string) => {
    const group = tables.subscriptionGroups.get('acct_one', id);
    if (group !== null) tables.subscriptionGroups.update({ ...group, is_public: 1 });
  };
  setPublic(news);
  setPublic(offers);
  const provenance = { by: 'key_one', ipAddress: null, userAgent: null, at: clock.now() };
  const person = {
    accountId: 'acct_one',
    source: 'api',
    defaultMethod: 'double_opt_in',
    provenance,
    mayAdd: () => null,
  } as const;
  const seq = granted(await writer.run((tx) => addPerson(tx, rig.ids, { email: ADA, ...profile }, person)));
  const joined = (id: string) => {
    const group = tables.subscriptionGroups.get('acct_one', id);
    return group === null ? null : (tables.subscriptions.get(group.seq, seq)?.is_active ?? null);
  };
  const { mail } = rig.sent({
    use_case: 'mk',
    recipient: ADA,
    recipient_hash: HASH,
    subscription_group_id: news,
  });
  const path = `/p/${rig.tokens.of('acct_one').unsubscribeUrl(mail)}`;
  const headers = { ...FORM, 'Accept-Language': 'en' };
  return {
    rig,
    mail,
    path,
    groups: { news, offers, hidden },
    joined,
    contact: () => tables.contacts.byIdentifier('acct_one', HASH),
    ineligible: (groupId: string | null = null) =>
      marketingIneligibility(tables, 'acct_one', HASH, groupId)?.status ?? null,
    get: (language = 'en') => rig.call(path, { headers: { 'Accept-Language': language } }),
    post: (fields: Record<string, string>) =>
      rig.call(path, { method: 'POST', headers, body: new URLSearchParams(fields).toString() }),
    settings: createPublicPageSettings(rig),
  };
}

const hex = (field: string) => `field-${Buffer.from(field).toString('hex')}`;

describe('the preference page', () => {
  it('shows public groups and the group of the mail, and no others', async () => {
    const { rig, get, groups } = await start();
    const { status, body } = await get();
    expect(status).toBe(200);
    expect(body).toContain('These settings are for mail from <bdi>');
    expect(body).toContain('a…@example.net');
    expect(body).not.toContain(ADA);
    expect(body).toMatch(/News.*Offers/s);
    expect(body).not.toContain('Staff');
    const { mail } = rig.sent({
      use_case: 'mk',
      recipient: ADA,
      recipient_hash: HASH,
      subscription_group_id: groups.hidden,
    });
    const other = await rig.call(`/p/${rig.tokens.of('acct_one').unsubscribeUrl(mail)}`);
    expect(other.body).toContain('Staff');
  });

  it('joins and leaves groups, with consent, history and events', async () => {
    const { rig, post, groups, joined, ineligible, contact } = await start();
    const shown = `${groups.news} ${groups.offers}`;
    const saved = await post({
      action: 'save',
      shown,
      [`group-${groups.news}`]: 'on',
      [`group-${groups.offers}`]: 'on',
    });
    expect(saved.body).toContain('Your preferences were saved.');
    expect([joined(groups.news), joined(groups.offers), joined(groups.hidden)]).toEqual([1, 1, null]);
    expect(ineligible(groups.offers)).toBeNull();
    expect(contact()).toMatchObject({ consent_method: 'web_form', consent_details: 'Preference page' });
    await post({ action: 'save', shown, [`group-${groups.news}`]: 'on' });
    expect([joined(groups.news), joined(groups.offers)]).toEqual([1, 0]);
    expect(ineligible(groups.offers)).toBe('unsubscribed');
    expect(rig.events()).toMatchObject([
      { event: 'email_unsubscribed', method: 'page', scope: 'group', subscriptionGroupId: groups.offers },
    ]);
    // A group that the form did not show does not change.
    await post({ action: 'save', shown: '' });
    expect(joined(groups.news)).toBe(1);
  });

  it('ends an opt-out from everything with a list, without those that were not chosen', async () => {
    const { rig, mail, post, groups, joined, ineligible } = await start();
    const shown = `${groups.news} ${groups.offers}`;
    const both = { [`group-${groups.news}`]: 'on', [`group-${groups.offers}`]: 'on' };
    await post({ action: 'save', shown, ...both });
    const stopped = await post({ action: 'stop' });
    expect(stopped.body).toContain('You are unsubscribed from all marketing mail');
    expect(rig.suppressions(mail)).toEqual(['unsubscribe mk']);
    expect(ineligible()).toBe('unsubscribed');
    await post({ action: 'save', shown, [`group-${groups.offers}`]: 'on' });
    expect(rig.suppressions(mail)).toEqual([]);
    expect([joined(groups.news), joined(groups.offers)]).toEqual([0, 1]);
  });

  it('pauses marketing mail until the day that it names, and ends the pause by itself', async () => {
    const { rig, get, post, ineligible } = await start();
    const paused = await post({ action: 'pause30' });
    expect(paused.body).toContain('Marketing mail is paused until February 14, 2026.');
    expect((await get('de')).body).toContain('14. Februar 2026');
    expect(ineligible()).toBe('paused');
    const pauses = createPauses({ ...rig, log: createLog({ level: 'silent', hashAddresses: false }) });
    rig.clock.advance(30 * DAY - 1);
    expect(rig.tables.contacts.endPauses(rig.clock.now(), 10)).toBe(0);
    rig.clock.advance(1);
    pauses.start();
    await eventually('the end of the pause', () => ineligible() === null);
    await pauses.stop();
    await post({ action: 'pause90' });
    expect(ineligible()).toBe('paused');
    await post({ action: 'resume' });
    expect(ineligible()).toBeNull();
  });

  it('saves language and the fields that the account chose', async () => {
    const { get, post, contact, settings } = await start({ customFields: { age: 41, tags: ['a'] } });
    expect((await get()).body).not.toContain('First name');
    granted(
      await settings.put('acct_one', {
        profileFields: [
          'firstName',
          'phone',
          'customFields.age',
          'customFields.tags',
          'customFields.City <b>',
        ].map((field) => ({ field, label: null, labels: {} })),
      }),
    );
    expect((await get()).body).toContain('City &lt;b&gt;');
    const fields = {
      action: 'save',
      language: 'de',
      [hex('firstName')]: 'Ada',
      [hex('lastName')]: 'not a field of the page',
      [hex('phone')]: '+442071838750',
      [hex('customFields.age')]: '42',
      [hex('customFields.tags')]: 'x',
      [hex('customFields.City <b>')]: 'Zürich',
    };
    const saved = await post(fields);
    expect(saved.body).toContain('<html lang="de">');
    expect(saved.body).toContain('Ihre Einstellungen wurden gespeichert.');
    expect(contact()).toMatchObject({
      first_name: 'Ada',
      last_name: null,
      phone: '+442071838750',
      language: 'de',
    });
    expect(JSON.parse(contact()?.custom_fields ?? '')).toEqual({
      age: 42,
      tags: ['a'],
      'City <b>': 'Zürich',
    });
    const refused = await post({
      ...fields,
      [hex('phone')]: '12',
      [hex('customFields.age')]: 'old',
      language: 'fr',
    });
    expect(refused.status).toBe(400);
    expect(refused.body.match(/aria-invalid="true" /g)).toHaveLength(2);
    expect(refused.body).toContain('value="old"');
    expect(contact()).toMatchObject({ phone: '+442071838750', language: 'de' });
  });

  it('records a request for erasure after a confirmation, ends marketing mail, and withdraws the request', async () => {
    const { post, contact, ineligible, rig } = await start();
    const unconfirmed = await post({ action: 'erase' });
    expect(unconfirmed.status).toBe(400);
    expect(contact()?.erasure_requested_at).toBeNull();
    const requested = await post({ action: 'erase', confirmed: 'yes' });
    expect(requested.body).toContain('You asked for the deletion of your data on January 15, 2026.');
    expect(ineligible()).toBe('unsubscribed');
    const list = () =>
      rig.tables.contacts.list({ accountId: 'acct_one', erasureRequested: true, beforeSeq: null, limit: 10 })
        .rows;
    expect(list()).toHaveLength(1);
    await post({ action: 'erase', confirmed: 'yes' });
    expect(rig.events().map(({ event }) => event)).toEqual(['email_unsubscribed', 'erasure_requested']);
    await post({ action: 'withdraw' });
    expect(list()).toEqual([]);
  });

  it('shows the same page to an erased person and to one who never was a contact', async () => {
    const { rig, mail, path, contact, post } = await start();
    rig.db.prepare('DELETE FROM consents').run();
    rig.tables.contacts.remove(contact()?.seq ?? 0);
    const { status, body } = await post({ action: 'save', shown: '', language: 'de' });
    expect(status).toBe(200);
    expect(body).toContain('There are no preferences');
    const token = path.slice(3);
    expect(body).toContain(`href="/u/${token}"`);
    const stranger = rig.sent({ use_case: 'tx' }).mail;
    const other = await rig.call(`/p/${rig.tokens.of('acct_one').unsubscribeUrl(stranger)}`);
    expect(other.body.replace(/href="[^"]*"/, '')).toBe(body.replace(/href="[^"]*"/, ''));
    expect(rig.suppressions(mail)).toEqual([]);
  });

  it('works after the message was deleted, and changes nothing for simulated mail', async () => {
    const { rig, mail, path, post, groups, joined } = await start();
    const gone = { ...mail, messageId: 'msg_1700000000000_abcdefghijkl' };
    const link = `/p/${rig.tokens.of('acct_one').unsubscribeUrl(gone)}`;
    const body = `action=save&shown=${groups.offers}&group-${groups.offers}=on`;
    expect((await rig.call(link, { method: 'POST', headers: FORM, body })).status).toBe(200);
    expect(joined(groups.offers)).toBe(1);
    const simulated = `/p/${rig.tokens.of('acct_one').unsubscribeUrl({ ...mail, simulated: true })}`;
    for (const action of ['pause30', 'stop', 'erase&confirmed=yes', `save&shown=${groups.offers}`])
      await rig.call(simulated, { method: 'POST', headers: FORM, body: `action=${action}` });
    expect(joined(groups.offers)).toBe(1);
    expect((await post({})).body).not.toContain('paused until');
    expect(path).toContain('/p/');
  });

  it('limits changes of a recipient, and never an opt-out', async () => {
    const { post, ineligible } = await start();
    for (let n = 0; n < 20; n++) expect((await post({ action: 'resume' })).status).toBe(200);
    expect((await post({ action: 'pause30' })).status).toBe(429);
    expect(ineligible()).toBeNull();
    expect((await post({ action: 'stop' })).status).toBe(200);
    expect(ineligible()).toBe('unsubscribed');
  });

  it('uses name, colors, logo and texts of the account', async () => {
    const { get, settings } = await start();
    granted(
      await settings.put('acct_one', {
        name: 'Shop & Söhne',
        logoUrl: 'https://cdn.example.com/logo.png',
        colors: { accent: '#ffee00', background: '#112233' },
        texts: { nl: { 'preferences.title': 'Wat wilt u <krijgen>?' } },
        language: 'nl',
      }),
    );
    const { body, headers } = await get('');
    expect(body).toContain('<html lang="nl">');
    expect(body).toContain('<h1>Wat wilt u &lt;krijgen&gt;?</h1>');
    expect(body).toContain('<img src="https://cdn.example.com/logo.png" alt="Shop &amp; Söhne">');
    expect(headers['content-security-policy']).toContain('img-src https://cdn.example.com;');
    expect(body).toContain('--page:#112233');
    expect((await get('sv')).body).toContain('<h1>E-postinställningar</h1>');
  });
});
