import { describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import { insertAccount } from '../../support/store.ts';
import { CUSTOMER_HOSTS, FORM, type PublicRig, startPublic } from './rig.ts';

/* Confirmations of sign-ups that must not add a member; test/http/api/sign-up.test.ts has the way from form to member. */
async function start() {
  const rig = await startPublic();
  const groupId = rig.group('News', { from: 'news@example.com', subject: null, intro: null });
  const signUp = {
    groupId,
    email: 'ada@example.net',
    firstName: 'Ada',
    lastName: '',
    at: rig.clock.now(),
    language: null,
  };
  return { rig, groupId, signUp, path: `/k/${rig.tokens.of('acct_one').signUp(signUp)}` };
}

const confirm = (rig: PublicRig, path: string) => rig.call(path, { method: 'POST', headers: FORM });
const contact = ({ tables }: PublicRig) =>
  tables.contacts.byIdentifier('acct_one', emailIdentifier('ada@example.net'));

describe('the confirmation of a sign-up', () => {
  it('changes nothing with GET, which scanners send, and adds the contact with POST', async () => {
    const { rig, path } = await start();
    const { status, body } = await rig.call(path);
    expect([status, body.includes('ada@example.net')]).toEqual([200, true]);
    expect(contact(rig)).toBeNull();
    expect((await confirm(rig, path)).status).toBe(200);
    expect(contact(rig)).toMatchObject({ first_name: 'Ada', consent_method: 'double_opt_in' });
  });

  it('is not found under the link host of a customer, and neither is the form', async () => {
    const { rig, path, groupId } = await start();
    const headers = { ...FORM, Host: CUSTOMER_HOSTS[0] ?? '' };
    const statuses = await Promise.all(
      [path, `/j/${groupId}`].map(async (page) => (await rig.call(page, { headers })).status),
    );
    expect([...statuses, (await rig.call(path, { method: 'POST', headers })).status]).toEqual([
      404, 404, 404,
    ]);
    expect((await rig.call(`/j/${groupId}`)).status).toBe(200);
    expect(contact(rig)).toBeNull();
  });

  it('is possible for seven days', async () => {
    const { rig, path } = await start();
    rig.clock.advance(7 * DAY + 1);
    expect((await rig.call(path)).status).toBe(410);
    expect((await confirm(rig, path)).status).toBe(410);
    expect(contact(rig)).toBeNull();
  });

  it('shows the same page when it is repeated', async () => {
    const { rig, path } = await start();
    const { body } = await confirm(rig, path);
    rig.clock.advance(1000);
    expect(await confirm(rig, path)).toMatchObject({ status: 200, body });
    expect(await rig.call(path)).toMatchObject({ status: 200, body });
  });

  it('leads to the form after the person opted out', async () => {
    const { rig, path, groupId } = await start();
    await confirm(rig, path);
    rig.clock.advance(1000);
    rig.tables.suppressions.add({
      account_id: 'acct_one',
      recipient_hash: emailIdentifier('ada@example.net'),
      stream: 'mk',
      reason: 'unsubscribe',
      email: null,
      message_seq: null,
      created_at: rig.clock.now(),
    });
    for (const { status, body } of [await rig.call(path), await confirm(rig, path)]) {
      expect(status).toBe(410);
      expect(body).toContain(`href="/j/${groupId}"`);
    }
  });

  it('is processed ten times for an address, then once a minute', async () => {
    const { rig, path } = await start();
    const statuses = [];
    for (let times = 0; times < 12; times++) statuses.push((await confirm(rig, path)).status);
    expect(statuses).toEqual([...Array<number>(10).fill(200), 429, 429]);
    rig.clock.advance(60_000);
    expect((await confirm(rig, path)).status).toBe(200);
  });

  it('requires a token of the account that has the group', async () => {
    const { rig, signUp } = await start();
    insertAccount(rig.tables, 'acct_other', rig.clock.now());
    const forged = `/k/${rig.tokens.of('acct_other').signUp(signUp)}`;
    expect((await confirm(rig, forged)).status).toBe(404);
    expect(contact(rig)).toBeNull();
  });

  it('requires an account that is not disabled', async () => {
    const { rig, groupId, path } = await start();
    const account = rig.tables.accounts.get('acct_one');
    if (account === null) throw new Error('there is no account');
    rig.tables.accounts.update({ ...account, status: 'disabled' });
    expect((await confirm(rig, path)).status).toBe(404);
    expect((await rig.call(`/j/${groupId}`)).status).toBe(404);
    expect(contact(rig)).toBeNull();
  });
});

it('asks to try again later while mail cannot be accepted', async () => {
  const { rig, groupId } = await start();
  const form = { method: 'POST', headers: FORM, body: 'email=ada%40example.net' };
  const { status, headers } = await rig.call(`/j/${groupId}`, form);
  expect([status, headers['retry-after']]).toEqual([503, '300']);
});

it('has no form of a group for which it is not turned on', async () => {
  const { rig } = await start();
  expect((await rig.call(`/j/${rig.group('Other')}`)).status).toBe(404);
});
