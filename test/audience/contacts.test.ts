import { describe, expect, it } from 'vitest';
import { presentContact } from '../../src/audience/present.ts';
import type { ConsentInput } from '../../src/audience/profile.ts';
import { iso } from '../../src/core/clock.ts';
import { emailIdentifier, phoneIdentifier } from '../../src/mail/identifier.ts';
import { MAX_CONSENT_ENTRIES } from '../../src/store/contacts/consent.ts';
import { granted } from '../support/refusal.ts';
import { CALLER, codeOf, startAudience } from './setup.ts';

const ADA = 'ada@example.net';
const ADA_ID = emailIdentifier(ADA);
const PHONE = '+442079460000';

describe('a contact', () => {
  it('has a UUID v7, the identifier of its email address, and an implicit consent with its provenance', async () => {
    const { add, clock } = await startAudience();
    const shown = presentContact(await add(ADA));
    expect(shown).toEqual({
      contactIdentifier: ADA_ID,
      userId: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      email: ADA,
      customFields: {},
      globalStatus: 'active',
      consentMethod: 'implicit_api',
      consentIpAddress: '192.0.2.1',
      consentUserAgent: 'Shop/1',
      consentTimestamp: iso(clock.now()),
      source: 'api',
      addedBy: 'key_one',
      createdAt: iso(clock.now()),
      updatedAt: iso(clock.now()),
    });
  });

  it('is found by either identifier, and shows that of its email address, else of its phone number', async () => {
    const { contacts, add } = await startAudience();
    await add(ADA, { phone: PHONE });
    const byPhone = granted(contacts.get('acct_one', phoneIdentifier(PHONE)));
    expect(granted(contacts.get('acct_one', ADA_ID)).seq).toBe(byPhone.seq);
    expect(presentContact(byPhone).contactIdentifier).toBe(ADA_ID);
    const other = granted(await contacts.create('acct_one', { phone: '+4930123456' }, CALLER));
    expect(presentContact(other).contactIdentifier).toBe(phoneIdentifier('+4930123456'));
  });

  it.each([
    ['the same address', { email: ADA }],
    ['the same address in capitals', { email: 'ADA@example.net' }],
    ['the same number', { phone: PHONE }],
    ['a new address and a known number', { email: 'new@example.net', phone: PHONE }],
  ])('exists only once: %s', async (_, profile) => {
    const { contacts, add } = await startAudience();
    await add(ADA, { phone: PHONE });
    expect(codeOf(await contacts.create('acct_one', profile, CALLER))).toBe('CONTACT_ALREADY_EXISTS');
  });

  it('belongs to one account', async () => {
    const { contacts, add } = await startAudience();
    await add(ADA);
    expect(codeOf(contacts.get('acct_two', ADA_ID))).toBe('CONTACT_NOT_FOUND');
    granted(await contacts.create('acct_two', { email: ADA, firstName: 'Other' }, CALLER));
    expect(granted(contacts.get('acct_one', ADA_ID)).first_name).toBeNull();
  });

  it('is created once by concurrent requests', async () => {
    const { contacts } = await startAudience();
    const results = await Promise.all(
      Array.from({ length: 50 }, () => contacts.create('acct_one', { email: ADA }, CALLER)),
    );
    const refused = results.map(codeOf).filter((code) => code === 'CONTACT_ALREADY_EXISTS');
    expect(refused).toHaveLength(49);
  });

  it('always needs an address or a number', async () => {
    const { contacts, add } = await startAudience();
    expect(codeOf(await contacts.create('acct_one', { firstName: 'Ada' }, CALLER))).toBe('VALIDATION_ERROR');
    await add(ADA);
    const how = { ...CALLER, merge: false };
    expect(codeOf(await contacts.update('acct_one', ADA_ID, { email: null }, how))).toBe('VALIDATION_ERROR');
    const changed = granted(await contacts.update('acct_one', ADA_ID, { email: null, phone: PHONE }, how));
    expect(changed).toMatchObject({ email: null, email_hash: null, phone: PHONE });
  });
});

describe('an update', () => {
  it('keeps fields that are absent, and removes those that are null', async () => {
    const { contacts, add } = await startAudience();
    await add(ADA, {
      firstName: 'Ada',
      lastName: 'Lovelace',
      customFields: { plan: 'gold', city: 'London' },
    });
    const put = { ...CALLER, merge: false };
    const changed = granted(await contacts.update('acct_one', ADA_ID, { lastName: null }, put));
    expect(changed).toMatchObject({
      first_name: 'Ada',
      last_name: null,
      custom_fields: '{"plan":"gold","city":"London"}',
    });
  });

  it.each([
    ['replaces custom fields as a whole', false, { plan: 'silver', until: null }],
    ['merges them, and removes those that are null', true, { city: 'London', plan: 'silver' }],
  ])('%s', async (_, merge, after) => {
    const { contacts, add } = await startAudience();
    await add(ADA, { customFields: { plan: 'gold', city: 'London' } });
    const customFields = { plan: 'silver', until: null };
    const changed = granted(
      await contacts.update('acct_one', ADA_ID, { customFields }, { ...CALLER, merge }),
    );
    expect(JSON.parse(changed.custom_fields)).toEqual(after);
  });

  it('refuses another contact’s address and changes nothing', async () => {
    const { contacts, add } = await startAudience();
    await add(ADA);
    await add('bob@example.net');
    const changes = { email: 'BOB@example.net', firstName: 'X' };
    const refused = await contacts.update('acct_one', ADA_ID, changes, { ...CALLER, merge: false });
    expect(codeOf(refused)).toBe('CONTACT_ALREADY_EXISTS');
    expect(granted(contacts.get('acct_one', ADA_ID)).first_name).toBeNull();
  });

  it('changes the identifier of the contact with the address', async () => {
    const { contacts, add } = await startAudience();
    const { user_id } = await add(ADA);
    granted(
      await contacts.update(
        'acct_one',
        ADA_ID,
        { email: 'countess@example.net' },
        { ...CALLER, merge: false },
      ),
    );
    expect(codeOf(contacts.get('acct_one', ADA_ID))).toBe('CONTACT_NOT_FOUND');
    expect(granted(contacts.get('acct_one', emailIdentifier('countess@example.net'))).user_id).toBe(user_id);
  });
});

describe('consent', () => {
  const put = { ...CALLER, merge: false };

  it('is a history, newest first; the contact shows the newest entry', async () => {
    const { contacts, add, clock } = await startAudience();
    const contact = await add(ADA);
    clock.advance(1000);
    const consent = {
      method: 'double_opt_in',
      details: 'Form 7',
      ipAddress: '198.51.100.9',
      consentedAt: 5,
    } as const;
    const changed = granted(
      await contacts.update('acct_one', ADA_ID, { consent }, { ...put, by: 'key_two' }),
    );
    expect(presentContact(changed)).toMatchObject({
      consentMethod: 'double_opt_in',
      consentDetails: 'Form 7',
      consentIpAddress: '198.51.100.9',
      consentTimestamp: iso(5),
    });
    expect(contacts.history(contact, null, 10)).toMatchObject([
      {
        n: 2,
        action: 'given',
        method: 'double_opt_in',
        recorded_by: 'key_two',
        recorded_at: clock.now(),
        said_at: 5,
      },
      { n: 1, action: 'given', method: 'implicit_api', recorded_by: 'key_one', ip_address: '192.0.2.1' },
    ]);
  });

  it('adds nothing when it is repeated', async () => {
    const { contacts, add, clock } = await startAudience();
    const contact = await add(ADA, { consent: { method: 'web_form', details: 'A' } });
    clock.advance(1000);
    for (const consent of [
      { method: 'web_form' },
      { details: 'A' },
      { method: 'web_form', details: 'A' },
    ] as const) {
      granted(await contacts.update('acct_one', ADA_ID, { consent }, put));
    }
    expect(contacts.history(contact, null, 10)).toHaveLength(1);
    expect(granted(contacts.get('acct_one', ADA_ID)).updated_at).toBe(contact.updated_at);
  });

  it('by another method does not keep the details of the previous one', async () => {
    const { contacts, add } = await startAudience();
    await add(ADA, { consent: { method: 'web_form', details: 'Form 7' } });
    const changed = granted(await contacts.update('acct_one', ADA_ID, { consent: { method: 'other' } }, put));
    expect(changed).toMatchObject({ consent_method: 'other', consent_details: null });
  });

  it('keeps the first and the newest entries of its history', async () => {
    const { contacts, add } = await startAudience();
    const contact = await add(ADA, { consent: { method: 'web_form', details: 'first' } });
    for (let n = 2; n <= MAX_CONSENT_ENTRIES + 3; n++)
      granted(await contacts.update('acct_one', ADA_ID, { consent: { details: `${n}` } }, put));
    const details = contacts.history(contact, null, 1000).map((entry) => entry.details);
    expect(details).toHaveLength(MAX_CONSENT_ENTRIES);
    expect([...details.slice(0, 2), ...details.slice(-2)]).toEqual([
      `${MAX_CONSENT_ENTRIES + 3}`,
      `${MAX_CONSENT_ENTRIES + 2}`,
      '5',
      'first',
    ]);
    expect(granted(contacts.get('acct_one', ADA_ID)).consent_details).toBe(`${MAX_CONSENT_ENTRIES + 3}`);
  });

  it('may be withdrawn, which is recorded, and given again', async () => {
    const { contacts, add } = await startAudience();
    const contact = await add(ADA);
    const without = granted(await contacts.update('acct_one', ADA_ID, { consent: null }, put));
    expect(without).toMatchObject({ consent_n: null, consent_method: null, consented_at: null });
    granted(await contacts.update('acct_one', ADA_ID, { consent: null }, put));
    granted(await contacts.update('acct_one', ADA_ID, { consent: { method: 'single_opt_in' } }, put));
    const actions = contacts.history(contact, null, 10).map(({ action, method }) => [action, method]);
    expect(actions).toEqual([
      ['given', 'single_opt_in'],
      ['withdrawn', null],
      ['given', 'implicit_api'],
    ]);
  });

  it('has an entry for an opt-out from marketing mail, and keeps its evidence on record', async () => {
    const { contacts, add, clock } = await startAudience();
    const contact = await add(ADA, { consent: { method: 'web_form', details: 'Form 7' } });
    clock.advance(1000);
    const consent = { details: 'By phone', ipAddress: '198.51.100.7', userAgent: 'B', consentedAt: 5 };
    const change = { globalStatus: 'unsubscribed', consent } as const;
    const changed = granted(await contacts.update('acct_one', ADA_ID, change, put));
    const entries = contacts.history(contact, null, 9);
    expect(entries).toMatchObject([
      {
        action: 'withdrawn',
        subscription_group_id: null,
        method: 'api',
        details: 'By phone',
        ip_address: '198.51.100.7',
        user_agent: 'B',
        said_at: 5,
        recorded_at: clock.now(),
        recorded_by: 'key_one',
      },
      { action: 'given', method: 'web_form' },
    ]);
    expect(changed).toMatchObject({ consent_method: 'web_form', consent_details: 'Form 7' });
    granted(await contacts.update('acct_one', ADA_ID, change, put));
    expect(contacts.history(contact, null, 9)).toEqual(entries);
  });

  it.each<[string, ConsentInput | null | undefined, object[]]>([
    ['no consent', undefined, [{ action: 'withdrawn', method: 'api', ip_address: null }]],
    ['the end of the consent', null, [{ action: 'withdrawn', method: null }]],
    [
      'a consent',
      { method: 'web_form', ipAddress: '198.51.100.7' },
      [
        { action: 'withdrawn', method: 'api', ip_address: null },
        { action: 'given', method: 'web_form', ip_address: '198.51.100.7' },
      ],
    ],
  ])('has one entry for an opt-out together with %s', async (_, consent, added) => {
    const { contacts, add } = await startAudience();
    const contact = await add(ADA);
    const change = { globalStatus: 'unsubscribed', consent } as const;
    granted(await contacts.update('acct_one', ADA_ID, change, put));
    expect(contacts.history(contact, null, 9)).toMatchObject([...added, { method: 'implicit_api' }]);
  });

  it('has an entry for the opt-out of a new contact', async () => {
    const { contacts, add } = await startAudience();
    const contact = await add(ADA, { globalStatus: 'unsubscribed', consent: { details: 'Moved' } });
    expect(contacts.history(contact, null, 9)).toMatchObject([
      { action: 'withdrawn', method: 'api', details: null, ip_address: null, user_agent: null },
      { action: 'given', method: 'implicit_api', details: 'Moved' },
    ]);
  });

  it('refuses an opt-out from the future', async () => {
    const { contacts, add, clock, status } = await startAudience();
    await add(ADA);
    const consent = { consentedAt: clock.now() + 2 * 86_400_000 };
    const change = { globalStatus: 'unsubscribed', consent } as const;
    const refused = await contacts.update('acct_one', ADA_ID, change, put);
    expect(refused).toMatchObject({ extras: { details: [{ field: 'consentTimestamp' }] } });
    expect(status(ADA)).toBe('active');
  });

  it('cannot be in the future', async () => {
    const { contacts, clock } = await startAudience();
    const consent = { consentedAt: clock.now() + 2 * 86_400_000 };
    const refused = await contacts.create('acct_one', { email: ADA, consent }, CALLER);
    expect(refused).toMatchObject({ extras: { details: [{ field: 'consentTimestamp' }] } });
  });
});

describe('the global status', () => {
  it.each([
    ['hard_bounce', 'all', 'bounced'],
    ['soft_bounces', 'all', 'bounced'],
    ['complaint', 'all', 'complained'],
    ['complaint', 'mk', 'complained'],
    ['unsubscribe', 'all', 'unsubscribed'],
    ['unsubscribe', 'mk', 'unsubscribed'],
    ['unsubscribe', 'tx', 'active'],
    ['manual', 'all', 'suppressed'],
    ['manual', 'mk', 'suppressed'],
    ['manual', 'tx', 'active'],
  ] as const)('follows a suppression: after %s of %s mail it is %s', async (reason, stream, expected) => {
    const { add, suppress, lift, status } = await startAudience();
    await add(ADA);
    await suppress(ADA, reason, stream);
    expect(status(ADA)).toBe(expected);
    await lift(ADA);
    expect(status(ADA)).toBe('active');
  });

  it('is the most severe suppression, and the oldest of equal ones', async () => {
    const { add, suppress, status } = await startAudience();
    await add(ADA);
    await suppress(ADA, 'unsubscribe', 'mk');
    await suppress(ADA, 'complaint', 'mk');
    await suppress(ADA, 'hard_bounce');
    expect(status(ADA)).toBe('complained');
  });

  it('follows the suppressions of the address of a new contact', async () => {
    const { add, suppress } = await startAudience();
    await suppress(ADA, 'hard_bounce');
    expect((await add(ADA)).global_status).toBe('bounced');
  });

  it('keeps an opt-out after a change of the address, but no bounce', async () => {
    const { add, suppress, contacts, tables } = await startAudience();
    await add(ADA);
    await suppress(ADA, 'hard_bounce');
    await suppress(ADA, 'unsubscribe', 'mk');
    const moved = granted(
      await contacts.update('acct_one', ADA_ID, { email: 'new@example.net' }, { ...CALLER, merge: false }),
    );
    expect(moved.global_status).toBe('unsubscribed');
    const carried = tables.suppressions.of('acct_one', emailIdentifier('new@example.net'));
    expect(carried).toMatchObject([{ reason: 'unsubscribe', stream: 'mk', email: 'new@example.net' }]);
    expect(tables.suppressions.of('acct_one', ADA_ID)).toHaveLength(2);
  });
});
