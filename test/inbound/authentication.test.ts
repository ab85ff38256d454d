import { describe, expect, it } from 'vitest';
import { SIGNING_RECORD, signMail } from '../support/signed-mail.ts';
import { mailOf, startInboundMx } from './setup.ts';

const RECORD = [SIGNING_RECORD.match(/.{1,255}/g) ?? []];
const SENDER = 'info@good.example';

async function start(spamPolicy: 'mark' | 'reject') {
  const mx = await startInboundMx();
  mx.dns.set('_dmarc.good.example', 'TXT', ['v=DMARC1; p=reject']);
  await mx.route('support@in.example.com', { spamPolicy });
  const client = await mx.client();
  return {
    ...mx,
    deliver: (mail: string) => client.mail(SENDER, 'support@in.example.com', mail),
    authentication: async () => {
      await mx.parsed();
      return mx.received().at(-1)?.authentication;
    },
  };
}

const signed = (domain: string) => signMail(mailOf({ From: SENDER }, 'Hello\r\n'), SENDER, domain);

describe('a signed mail for an inbound route', () => {
  it('passes DKIM and DMARC', async () => {
    const mx = await start('mark');
    mx.dns.set('s1._domainkey.good.example', 'TXT', RECORD);
    expect(await mx.deliver(signed('good.example'))).toMatch(/^250/);
    expect(await mx.authentication()).toMatchObject({
      spf: 'none',
      dkim: 'pass',
      dkimDomains: ['good.example'],
      dmarc: 'pass',
      arc: 'none',
    });
  });

  it('is received by a route that rejects forged mail', async () => {
    const mx = await start('reject');
    mx.dns.set('s1._domainkey.good.example', 'TXT', RECORD);
    expect(await mx.deliver(signed('good.example'))).toMatch(/^250/);
    expect(await mx.authentication()).toMatchObject({ dkim: 'pass', dmarc: 'pass' });
  });

  it('fails when it was changed, when its key is not published, and when another domain signed it', async () => {
    const mx = await start('mark');
    mx.dns.set('s1._domainkey.good.example', 'TXT', RECORD);
    mx.dns.set('s1._domainkey.other.example', 'TXT', RECORD);
    await mx.deliver(signed('good.example').replace('Hello\r\n', 'Pay\r\n'));
    expect(await mx.authentication()).toMatchObject({ dkim: 'fail', dkimDomains: [], dmarc: 'fail' });
    await mx.deliver(signed('other.example'));
    expect(await mx.authentication()).toMatchObject({
      dkim: 'pass',
      dkimDomains: ['other.example'],
      dmarc: 'fail',
    });
    await mx.deliver(signed('keyless.good.example'));
    const { dkim, dmarc } = (await mx.authentication()) ?? {};
    expect([dkim, dmarc]).toEqual([expect.not.stringMatching(/^(pass|temperror)$/), 'fail']);
  });

  it('has a temporary error when its key cannot be looked up', async () => {
    const mx = await start('reject');
    mx.dns.set('s1._domainkey.good.example', 'TXT', 'SERVFAIL');
    expect(await mx.deliver(signed('good.example'))).toMatch(/^451 4\.7\.1/);
    expect(mx.rows()).toEqual([]);
  });
});
