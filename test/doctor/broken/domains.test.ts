import { keyRecordValue } from '../../../src/domains/keys.ts';
import { fixedPublicKey } from '../../support/rsa-keys.ts';
import { describeBroken } from './rows.ts';

const spfRecord = (terms: string) => [`v=spf1 ${terms} ~all`];
const DKIM_NAME = 'prone._domainkey.example.com';

describeBroken(
  'broken records of a domain',
  ['domain-records', 'dmarc-alignment'],
  [
    {
      title: 'return path of a domain that leads elsewhere',
      check: 'domain-records',
      break: ({ dns }) => dns.set('return-a.example.com', 'MX', ['10 mx.hoster.test']),
      status: 'failure',
      subject: 'example.com: MX',
      reason: /goes to mx\.hoster\.test, so bounces and complaints do not reach us/,
      fix: /^return-a\.example\.com\. 3600 IN MX 10 mail\.example\.net\.$/,
    },
    {
      title: 'wrong DKIM key of a domain',
      check: 'domain-records',
      break: ({ dns }) => dns.set(DKIM_NAME, 'TXT', [keyRecordValue(fixedPublicKey(3))]),
      status: 'failure',
      subject: 'example.com: DKIM',
      reason: /Another key/,
      fix: /^prone\._domainkey\.example\.com\. 3600 IN TXT "v=DKIM1/,
    },
    {
      title: 'SPF of a domain without the include',
      check: 'domain-records',
      break: ({ dns }) => dns.set('example.com', 'TXT', spfRecord('mx')),
      status: 'failure',
      subject: 'example.com: SPF',
      reason: /SPF of example\.com gives/,
      fix: /^example\.com\. 3600 IN TXT "v=spf1 .*include:spf\.mail\.example\.net/,
    },
    {
      title: 'right SPF of a domain whose include is an error',
      check: 'domain-records',
      break: ({ dns }) => dns.set('spf.mail.example.net', 'TXT', ['v=spf1 ip4:not-an-address ~all']),
      status: 'failure',
      subject: 'example.com: SPF',
      reason: /"postrider zone"/,
      fix: /^postrider zone$/,
    },
    {
      title: 'DMARC policy without effect',
      check: 'domain-records',
      break: ({ dns }) => dns.set('_dmarc.example.com', 'TXT', ['v=DMARC1; p=none']),
      status: 'failure',
      subject: 'example.com: DMARC',
      reason: /p=none/,
    },
    {
      title: 'domain that was never verified',
      check: 'domain-records',
      options: { domain: { status: 'PENDING' } },
      break: ({ dns }) => dns.remove(DKIM_NAME),
      status: 'warning',
      subject: 'example.com: DKIM',
      reason: /no TXT record/,
    },
    {
      title: 'link host of a domain that leads elsewhere',
      check: 'domain-records',
      break: ({ dns }) => dns.set('link.example.com', 'CNAME', ['parking.test']),
      status: 'warning',
      subject: 'example.com: Tracking',
      reason: /does not lead to this platform/,
    },
    {
      title: 'named domain that is not registered',
      check: 'domain-records',
      named: 'other.example',
      status: 'failure',
      subject: 'other.example',
      reason: /not registered/,
      fix: /^postrider domain add other\.example/,
    },
    {
      title: 'neither DKIM nor SPF aligned',
      check: 'dmarc-alignment',
      break: ({ dns }) => {
        dns.remove(DKIM_NAME);
        dns.remove('return-a.example.com', 'TXT');
      },
      status: 'failure',
      subject: 'example.com',
      reason: /neither an aligned DKIM signature nor an aligned SPF pass: receivers reject it/,
    },
    {
      title: 'strict SPF alignment',
      check: 'dmarc-alignment',
      break: ({ dns }) => dns.set('_dmarc.example.com', 'TXT', ['v=DMARC1; p=reject; aspf=s']),
      status: 'warning',
      reason: /with aspf=s the return path does not count/,
      fix: /^_dmarc\.example\.com\. 3600 IN TXT "v=DMARC1; p=reject"$/,
    },
    {
      title: 'return path of the platform',
      check: 'dmarc-alignment',
      options: { domain: { return_path: 'platform' } },
      status: 'warning',
      reason: /by DKIM alone/,
    },
    {
      title: 'DKIM key that is not in DNS',
      check: 'dmarc-alignment',
      break: ({ dns }) => dns.remove(DKIM_NAME),
      status: 'warning',
      reason: /by SPF alone, so forwarded mail fails/,
    },
  ],
);
