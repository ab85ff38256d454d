import { expect, it } from 'vitest';
import { CUSTOMER_HOSTS, FORM, ONE_CLICK, startPublic } from './rig.ts';

const [OWN, OTHER] = CUSTOMER_HOSTS;

it.each(['u', 'r'] as const)(
  '/%s is shown under link hosts of its account and the platform only',
  async (name) => {
    const rig = await startPublic({ POSTRIDER_PUBLIC__URL: 'https://mail.example' });
    const { mail } = rig.sent({ use_case: 'mk' });
    const tokens = rig.tokens.of('acct_one');
    const path = `/${name}/${name === 'u' ? tokens.unsubscribeUrl(mail) : tokens.reportUrl(mail)}`;
    const call = (host: string | undefined, more: object = {}) =>
      rig.call(path, { headers: { Host: host ?? '' }, ...more });
    for (const host of [OWN, 'mail.example', '127.0.0.1']) expect((await call(host)).status).toBe(200);
    for (const host of [OTHER, 'phishing.example']) {
      const { status, headers } = await call(host);
      expect([status, headers['location']]).toEqual([302, `https://mail.example${path}`]);
      const form = { method: 'POST', headers: { ...FORM, Host: host }, body: 'choice=all&reason=fraud' };
      expect((await call(host, form)).status).toBe(404);
    }
    expect(rig.events()).toEqual([]);
    if (name === 'r') return;
    // A mailbox provider follows no redirect.
    const post = { ...ONE_CLICK, headers: { ...FORM, Host: 'former.example' } };
    expect((await call('former.example', post)).status).toBe(200);
    expect(rig.events()).toMatchObject([{ event: 'email_unsubscribed' }]);
  },
);
