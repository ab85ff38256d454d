// Long: waits for the timeouts of name servers that do not answer.
import { expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { startSetupForTest } from '../support/sending-setup.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/** Domains that are not in any cache. */
const FRESH = Array.from({ length: 10 }, (_, n) => `fresh${n}.example`);

/** How many mail hosts the domains of `.silent.example` have, whose addresses are never answered; 0: nothing is answered. */
const MAIL_HOSTS = [0, 5];

/*
 * One account sends to hundreds of domains whose name servers never answer; another account sends to domains whose
 * name servers answer.
 */
it.each(MAIL_HOSTS)(
  'delivers mail of an account at the first attempt while lookups of another account get no answer (%d mail hosts)',
  async (hosts) => {
    const setup = await startSetupForTest({ 'dns.timeoutMs': 2000 });
    const { daemon, dns, sink } = setup;
    const other = await daemon.account('Other');
    await verifiedDomain(daemon, dns, 'other.example', { api: other });
    for (const name of FRESH) {
      publishMailHost(dns, name, sink.host);
      dns.set(`_mta-sts.${name}`, '*', 'NXDOMAIN');
    }
    dns.set('*', '*', 'silent');
    for (let n = 0; n < (hosts === 0 ? 0 : 1000); n++) {
      const name = `n${n}.silent.example`;
      dns.set(
        name,
        'MX',
        Array.from({ length: hosts }, (_, host) => `10 mx${host}.${name}`),
      );
      dns.set(`_mta-sts.${name}`, '*', 'NXDOMAIN');
    }
    // One transactional request has at most 50 recipients.
    for (let batch = 0; batch < 20; batch++) {
      const to = Array.from({ length: 50 }, (_, n) => `ada@n${batch * 50 + n}.silent.example`);
      await daemon.api.send({ ...SHORT_MAIL, from: 'a@kunde.example', to });
    }
    const asked = () => dns.questions.filter(({ name }) => name.endsWith('.silent.example')).length;
    await eventually('lookups without an answer', () => asked() > 300);
    for (const name of FRESH) {
      const { data } = await other.send({ ...SHORT_MAIL, from: 'b@other.example', to: `ada@${name}` });
      const message = await eventually('the message to be delivered or deferred', async () => {
        const found = await other.message(data.messageId);
        return ['delivered', 'deferred'].includes(found.status) ? found : null;
      });
      expect(message.status, name).toBe('delivered');
    }
  },
);
