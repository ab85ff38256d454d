import { keyRecordValue } from '../../../src/domains/keys.ts';
import { freePort } from '../../support/free-port.ts';
import { fixedPublicKey } from '../../support/rsa-keys.ts';
import { ADDRESS, HOST, LIST, POINTER } from '../setup.ts';
import { describeBroken } from './rows.ts';

const spfRecord = (terms: string) => [`v=spf1 ${terms} ~all`];
const ALT_KEY = `alt_domain_one.dkim.${HOST}`;

/** The DNS server of the test, which is a resolver, is the name server of the zone. */
const SERVED = {
  settings: {
    'dns.server.listen': '127.0.0.1:53',
    'dns.server.addresses': ['127.0.0.1'],
  },
};

describeBroken(
  'broken records of the platform',
  ['hostname', 'reverse-dns', 'spf', 'delegation', 'platform-zone', 'public-url', 'blocklists'],
  [
    {
      title: 'host name that is not fully qualified',
      check: 'hostname',
      break: ({ config }) => void (config.hostname = 'mail'),
      status: 'failure',
      subject: 'mail',
      reason: /not a fully qualified domain name/,
    },
    {
      title: 'host name without an address',
      check: 'hostname',
      break: ({ dns }) => dns.remove(HOST, 'A'),
      status: 'failure',
      reason: /no address in DNS/,
      fix: /^mail\.example\.net\. 3600 IN A 192\.0\.2\.25$/,
    },
    {
      title: 'EHLO name that leads to another address',
      check: 'hostname',
      break: ({ dns }) => dns.set(HOST, 'A', ['198.51.100.1']),
      status: 'warning',
      reason: /from 192\.0\.2\.25, but the name resolves to 198\.51\.100\.1/,
      fix: /IN A 192\.0\.2\.25$/,
    },
    {
      title: 'host name whose lookup fails',
      check: 'hostname',
      break: ({ dns }) => {
        dns.set(HOST, 'A', 'SERVFAIL');
        dns.set(HOST, 'AAAA', 'SERVFAIL');
      },
      status: 'unknown',
      reason: /SERVFAIL/,
    },
    {
      title: 'missing PTR record',
      check: 'reverse-dns',
      break: ({ dns }) => dns.remove(POINTER),
      status: 'failure',
      subject: ADDRESS,
      reason: /no PTR record/,
      fix: /^25\.2\.0\.192\.in-addr\.arpa\. 3600 IN PTR mail\.example\.net\.$/,
    },
    {
      title: 'PTR record that does not lead back',
      check: 'reverse-dns',
      break: ({ dns }) => {
        dns.set(POINTER, 'PTR', ['host.provider.test']);
        dns.set('host.provider.test', 'A', ['198.51.100.7']);
      },
      status: 'failure',
      reason: /names host\.provider\.test, which does not lead back/,
      fix: /IN PTR mail\.example\.net\.$/,
    },
    {
      title: 'PTR record of the host name without its address',
      check: 'reverse-dns',
      break: ({ dns }) => dns.set(HOST, 'A', ['198.51.100.7']),
      status: 'failure',
      reason: /does not lead back/,
      fix: /^mail\.example\.net\. 3600 IN A 192\.0\.2\.25$/,
    },
    {
      title: 'two PTR records',
      check: 'reverse-dns',
      break: ({ dns }) => dns.set(POINTER, 'PTR', [HOST, 'old.example.net']),
      status: 'warning',
      reason: /2 PTR records \(mail\.example\.net, old\.example\.net\)/,
    },
    {
      title: 'PTR record that differs from EHLO and looks like the name of a dial-up line',
      check: 'reverse-dns',
      break: ({ dns }) => {
        dns.set(POINTER, 'PTR', ['static-192-0-2-25.provider.test']);
        dns.set('static-192-0-2-25.provider.test', 'A', [ADDRESS]);
      },
      status: 'warning',
      reason:
        /looks like the name of a dial-up line, but its mail is sent with the EHLO name mail\.example\.net/,
    },
    {
      title: 'PTR record whose lookup fails',
      check: 'reverse-dns',
      break: ({ dns }) => dns.set(POINTER, 'PTR', 'SERVFAIL'),
      status: 'unknown',
      reason: /could not be looked up/,
    },
    {
      title: 'SPF of the platform without the include',
      check: 'spf',
      break: ({ dns }) => dns.set(HOST, 'TXT', spfRecord('ip4:198.51.100.1')),
      status: 'failure',
      reason: /gives "softfail"/,
      fix: /^mail\.example\.net\. 3600 IN TXT "v=spf1 .*include:spf\.mail\.example\.net/,
    },
    {
      title: 'right SPF of the platform whose include lacks an address',
      check: 'spf',
      break: ({ dns }) => dns.set(`spf.${HOST}`, 'TXT', spfRecord('ip4:198.51.100.1')),
      status: 'failure',
      reason: /does not list that address/,
      fix: /^postrider zone$/,
    },
    {
      title: 'two SPF records of the platform',
      check: 'spf',
      break: ({ dns }) => dns.set(HOST, 'TXT', [...spfRecord('a'), ...spfRecord('mx')]),
      status: 'failure',
      reason: /2 SPF records/,
    },
    {
      title: 'zone that is not delegated',
      check: 'delegation',
      options: SERVED,
      status: 'failure',
      subject: `NS ${HOST}`,
      reason: /not delegated/,
      fix: /^mail\.example\.net\. 3600 IN NS ns1\.mail\.example\.net\.\nns1\.mail\.example\.net\. 3600 IN A 127\.0\.0\.1$/,
    },
    {
      title: 'zone that is delegated to others',
      check: 'delegation',
      options: SERVED,
      break: ({ dns }) => dns.set(HOST, 'NS', ['ns.provider.test']),
      status: 'failure',
      reason: /delegated to others: ns\.provider\.test/,
    },
    {
      title: 'delegation with a further name server',
      check: 'delegation',
      options: SERVED,
      break: ({ dns }) => dns.set(HOST, 'NS', [`ns1.${HOST}`, 'ns.provider.test']),
      status: 'warning',
      reason: /also names ns\.provider\.test/,
    },
    {
      title: 'delegation whose lookup fails',
      check: 'delegation',
      options: SERVED,
      break: ({ dns }) => dns.set(HOST, 'NS', 'SERVFAIL'),
      status: 'unknown',
      reason: /SERVFAIL/,
    },
    {
      title: 'name server that does not answer',
      check: 'delegation',
      options: SERVED,
      break: async ({ machine }) => void (machine.dnsPort = await freePort()),
      status: 'failure',
      subject: /^ns1\.mail\.example\.net/,
      reason: /does not answer/,
    },
    {
      title: 'name server that does not serve the zone',
      check: 'delegation',
      options: SERVED,
      status: 'failure',
      subject: /^ns1\.mail\.example\.net/,
      reason: /does not serve the zone/,
    },
    {
      title: 'no SPF record of the platform',
      check: 'spf',
      break: ({ dns }) => dns.remove(HOST, 'TXT'),
      status: 'failure',
      reason: /no SPF record/,
    },
    {
      title: 'wrong DKIM key in the zone of the platform',
      check: 'platform-zone',
      break: ({ dns }) => dns.set(ALT_KEY, 'TXT', [keyRecordValue(fixedPublicKey(3))]),
      status: 'failure',
      subject: `TXT ${ALT_KEY}`,
      reason: /another key/,
      fix: /^alt_domain_one\.dkim\.mail\.example\.net\. 300 IN TXT "v=DKIM1; k=rsa; p=/,
    },
    {
      title: 'missing DKIM key in the zone of the platform',
      check: 'platform-zone',
      break: ({ dns }) => dns.remove(ALT_KEY),
      status: 'failure',
      subject: `TXT ${ALT_KEY}`,
      reason: /There is no TXT record/,
    },
    {
      title: 'MX of the platform that leads elsewhere',
      check: 'platform-zone',
      break: ({ dns }) => dns.set(HOST, 'MX', ['10 mx.hoster.test']),
      status: 'failure',
      subject: `MX ${HOST}`,
      reason: /goes elsewhere.*Found: 10 mx\.hoster\.test\. Expected: 10 mail\.example\.net/,
      fix: /IN MX 10 mail\.example\.net\.$/,
    },
    {
      title: 'MX of the platform behind another host',
      check: 'platform-zone',
      break: ({ dns }) => dns.set(HOST, 'MX', ['5 mx.hoster.test', `10 ${HOST}`]),
      status: 'warning',
      subject: `MX ${HOST}`,
      reason: /Another host is preferred/,
    },
    {
      title: 'SPF of the platform without an address',
      check: 'platform-zone',
      break: ({ dns }) => dns.set(`spf.${HOST}`, 'TXT', spfRecord('ip4:198.51.100.1')),
      status: 'failure',
      subject: `TXT spf.${HOST}`,
      reason: /lacks ip4:192\.0\.2\.25/,
    },
    {
      title: 'link host of the platform that leads elsewhere',
      check: 'platform-zone',
      break: ({ dns }) => dns.set(`track.${HOST}`, 'CNAME', ['parking.test']),
      status: 'failure',
      subject: `CNAME track.${HOST}`,
      reason: /leads elsewhere/,
    },
    {
      title: 'missing permission for DMARC reports',
      check: 'platform-zone',
      break: ({ dns }) => dns.remove(`doctor-example.com._report._dmarc.${HOST}`),
      status: 'warning',
      reason: /There is no TXT record; expected: v=DMARC1/,
    },
    {
      title: 'public.url without https',
      check: 'public-url',
      options: { settings: { 'public.url': 'http://pages.test' } },
      status: 'warning',
      reason: /RFC 8058/,
      fix: /url = "https:\/\/pages\.test"/,
    },
    {
      title: 'public.url on loopback',
      check: 'public-url',
      options: { settings: { 'public.url': 'http://127.0.0.1:8081' } },
      status: 'failure',
      reason: /lead nowhere/,
    },
    {
      title: 'listed address',
      check: 'blocklists',
      break: ({ dns }) => {
        dns.set(`25.2.0.192.${LIST}`, 'A', ['127.0.0.4']);
        dns.set(`25.2.0.192.${LIST}`, 'TXT', ['Listed, see https://bl.test/why?ip=192.0.2.25']);
      },
      status: 'failure',
      subject: `${ADDRESS} in ${LIST}`,
      reason: /is listed \(127\.0\.0\.4\): Listed, see/,
      fix: /https:\/\/bl\.test\/why\?ip=192\.0\.2\.25$/,
    },
    {
      title: 'blocklist that refuses the resolver',
      check: 'blocklists',
      break: ({ dns }) => dns.set(`2.0.0.127.${LIST}`, 'A', ['127.255.255.254']),
      status: 'warning',
      subject: LIST,
      reason: /refuses queries of this DNS resolver \(127\.255\.255\.254\)/,
      fix: /unbound/,
    },
    {
      title: 'blocklist that lists everything',
      check: 'blocklists',
      break: ({ dns }) => dns.set(`1.0.0.127.${LIST}`, 'A', ['127.0.0.2']),
      status: 'unknown',
      reason: /out of service/,
      fix: /^Remove /,
    },
    {
      title: 'blocklist without its test entry',
      check: 'blocklists',
      break: ({ dns }) => dns.remove(`2.0.0.127.${LIST}`),
      status: 'unknown',
      reason: /does not have its own test entry/,
    },
    {
      title: 'resolver through which no blocklist answers',
      check: 'blocklists',
      break: ({ dns, config }) => {
        dns.remove(`2.0.0.127.${LIST}`);
        config.doctor.blocklists = [
          { zone: LIST, families: ['ipv4'] },
          { zone: 'other.test', families: ['ipv4'] },
        ];
      },
      status: 'unknown',
      subject: 'dns.resolvers',
      reason: /None of the 2 lists \(bl\.test, other\.test\)/,
      fix: /unbound/,
    },
    {
      title: 'blocklist whose domain was sold',
      check: 'blocklists',
      break: ({ dns }) => {
        for (const entry of ['2.0.0.127', '1.0.0.127', '25.2.0.192'])
          dns.set(`${entry}.${LIST}`, 'A', ['198.51.100.80']);
      },
      status: 'unknown',
      reason: /not those of a list \(198\.51\.100\.80/,
    },
    {
      title: 'blocklist that does not answer',
      check: 'blocklists',
      break: ({ dns }) => dns.set(`2.0.0.127.${LIST}`, 'A', 'silent'),
      status: 'unknown',
      reason: /does not answer/,
    },
  ],
);
