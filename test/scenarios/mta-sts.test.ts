import { expect } from 'vitest';
import { DAY, MINUTE } from '../../src/core/clock.ts';
import { selfSigned } from '../support/certificates.ts';
import { policyText } from '../support/policy-host.ts';
import { deferred, delivered } from './support/attempts.ts';
import { deferredForTls } from './support/deferred-for-tls.ts';
import { AUTHORITY } from './support/environment.ts';
import { BY_POLICY, OPPORTUNISTIC, policyOf } from './support/published-policies.ts';
import { registerScenarios } from './support/register.ts';
import { unavailablePolicy } from './support/unavailable-policy.ts';
import { announcePolicy } from './support/zone.ts';

const PROVIDER = 'tenant.provider.policy-host-alias-certificate.example';

const CERTIFICATE = AUTHORITY.issue(['mx.policy-kept.example']);

const ELSEWHERE = 'policies.policy-redirected.example';

const NAMES = ['mx.sts-enforce-expired.example'];

registerScenarios(
  'mta-sts',
  {
    'policy-expired': {
      title: 'no longer enforces a withdrawn policy after its max_age',
      settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, idleSeconds: 0 }] }),
      mtaSts: policyOf('policy-expired'),
      hosts: { mx: { tls: AUTHORITY.issue(['mx.policy-expired.example']) } },
      messages: { ada: BY_POLICY, bob: OPPORTUNISTIC },
      play: async (run) => {
        await run.send('ada');
        await run.finish();
        run.publish({ '_mta-sts': { TXT: 'NXDOMAIN' }, 'mta-sts': { A: 'NXDOMAIN' } });
        run.sink('mx').program({ tls: selfSigned(['mx.policy-expired.example']) });
        await run.env.advance(1.1 * DAY);
        await run.send('bob');
      },
    },
    'policy-host-alias-certificate': {
      // RFC 8461 §3.3
      title: 'ignores a policy from a host whose certificate is only for the target of its alias',
      mtaSts: { ...policyOf('policy-host-alias-certificate'), certificate: AUTHORITY.issue([PROVIDER]) },
      hosts: { mx: { tls: selfSigned(['mx.example']) } },
      messages: { ada: OPPORTUNISTIC },
      play: async (run) => {
        run.publish({
          'mta-sts': { A: 'NODATA', CNAME: ['tenant.provider'] },
          'tenant.provider': { A: [run.env.policyHost().address] },
        });
        await run.sendAll();
      },
    },
    'policy-host-down': unavailablePolicy(
      'delivers without a policy when the policy host refuses connections',
      policyOf('policy-host-down'),
      () => ({ 'mta-sts': { A: ['127.99.99.99'] } }),
    ),
    'policy-host-expired': unavailablePolicy('ignores a policy from a host whose certificate has expired', {
      ...policyOf('policy-host-expired'),
      certificate: AUTHORITY.issue(['mta-sts.policy-host-expired.example'], new Date('2020-01-01')),
    }),
    'policy-host-other-name': unavailablePolicy(
      'ignores a policy from a host with the certificate of another host',
      {
        ...policyOf('policy-host-other-name'),
        certificate: AUTHORITY.issue(['mta-sts.elsewhere.example']),
      },
    ),
    'policy-host-self-signed': unavailablePolicy(
      'ignores a policy from a host whose certificate is self-signed',
      {
        ...policyOf('policy-host-self-signed'),
        certificate: selfSigned(['mta-sts.policy-host-self-signed.example']),
      },
    ),
    'policy-kept': {
      title: 'enforces a stored policy while neither its TXT record nor its host can be looked up',
      settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, idleSeconds: 0 }] }),
      mtaSts: policyOf('policy-kept'),
      hosts: { mx: { tls: CERTIFICATE } },
      messages: {
        ada: BY_POLICY,
        bob: {
          attempts: [
            deferred(
              '454 4.7.5',
              'tls-failed',
              5 * MINUTE,
              'mx starttls: TLS handshake failed: self-signed certificate (required by the MTA-STS policy of policy-kept.example)',
            ),
            delivered('mx dot 250 TLS verified'),
          ],
          status: 'delivered',
        },
      },
      play: async (run) => {
        await run.send('ada');
        await run.finish();
        run.publish({ '_mta-sts': { TXT: 'SERVFAIL' }, 'mta-sts': { A: 'SERVFAIL' } });
        run.sink('mx').program({ tls: selfSigned(['mx.policy-kept.example']) });
        await run.env.advance(10 * MINUTE);
        await run.send('bob');
        await run.settle();
        run.sink('mx').program({ tls: CERTIFICATE });
      },
    },
    'policy-malformed': unavailablePolicy('ignores a policy without max_age', {
      policy: 'version: STSv1\r\nmode: enforce\r\nmx: mx.elsewhere.example\r\n',
    }),
    'policy-missing': unavailablePolicy(
      'delivers without a policy when the policy host does not serve the domain',
      {
        policy: null,
      },
    ),
    'policy-redirected': {
      // RFC 8461 §3.3
      title: 'does not follow a redirect of a policy host, and delivers without a policy',
      mtaSts: {
        policy: (_, response) => {
          response.writeHead(302, { location: `https://${ELSEWHERE}/.well-known/mta-sts.txt` }).end();
        },
      },
      hosts: { mx: { tls: selfSigned(['mx.example']) } },
      messages: { ada: OPPORTUNISTIC },
      play: async (run) => {
        const policies = run.env.policyHost();
        run.publish({ policies: { A: [policies.address] } });
        const policy = policyText('enforce', [`mx.${run.domain}`]);
        policies.handle(ELSEWHERE, AUTHORITY.issue([ELSEWHERE]), (_, response) => {
          response.writeHead(200, { 'content-type': 'text/plain' }).end(policy);
        });
        await run.sendAll();
      },
      verify: ({ env, domain }) => {
        const requests = env.policyHost().requests.filter((request) => request.includes(domain));
        expect(requests).toEqual([`mta-sts.${domain} /.well-known/mta-sts.txt`]);
      },
    },
    'sts-enforce-expired': deferredForTls({
      title: 'defers mail while the certificate of a host in an enforced policy has expired',
      mtaSts: policyOf('sts-enforce-expired'),
      tls: AUTHORITY.issue(NAMES, new Date('2020-01-01')),
      session:
        'mx starttls: TLS handshake failed: certificate has expired (required by the MTA-STS policy of sts-enforce-expired.example)',
      certificate: AUTHORITY.issue(NAMES),
      encryption: BY_POLICY.tls ?? {},
    }),
    'sts-enforce-not-offered': deferredForTls({
      title:
        'defers mail while a host in an enforced policy does not offer STARTTLS, and sends nothing in plain text',
      mtaSts: policyOf('sts-enforce-not-offered'),
      tls: null,
      session:
        'mx starttls: mx.sts-enforce-not-offered.example does not offer STARTTLS (required by the MTA-STS policy of sts-enforce-not-offered.example)',
      connection: 'EHLO QUIT',
      certificate: AUTHORITY.issue(['mx.sts-enforce-not-offered.example']),
    }),
    'sts-enforce-other-name': deferredForTls({
      title: 'defers mail while a host in an enforced policy has the certificate of another host',
      mtaSts: policyOf('sts-enforce-other-name'),
      tls: AUTHORITY.issue(['mail.elsewhere.example']),
      session:
        "mx starttls: TLS handshake failed: Host: mx.sts-enforce-other-name.example. is not in the cert's altnames: DNS:mail.elsewhere.example (required by the MTA-STS policy of sts-enforce-other-name.example)",
      certificate: AUTHORITY.issue(['mx.sts-enforce-other-name.example']),
    }),
    'sts-enforce': {
      title: 'verifies the certificate of a host in an enforced policy',
      mtaSts: policyOf('sts-enforce'),
      hosts: { mx: { tls: AUTHORITY.issue(['mx.sts-enforce.example']) } },
      messages: { ada: BY_POLICY },
    },
    'sts-mismatched-host': {
      title:
        'defers mail while no MX host is in the policy, and delivers it when a policy with a new id permits the host',
      // Longer than the TTL of the name server's records.
      settings: () => ({ 'delivery.retry.first': '20m' }),
      mtaSts: policyOf('sts-mismatched-host', 'enforce', ['*.elsewhere.example']),
      hosts: { mx: { tls: AUTHORITY.issue(['mx.sts-mismatched-host.example']) } },
      messages: {
        ada: {
          attempts: [
            deferred(
              '454 4.7.5',
              'tls-failed',
              20 * MINUTE,
              'mx dns: mx.sts-mismatched-host.example is not a mail host in the MTA-STS policy of sts-mismatched-host.example, which permits *.elsewhere.example',
            ),
            delivered('mx dot 250 TLS verified'),
          ],
          status: 'delivered',
        },
      },
      connections: { mx: ['EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
      play: async ({ env, domain, sendAll, settle }) => {
        await sendAll();
        await settle();
        const policy = policyText('enforce', [`mx.${domain}`]);
        env.policyHost().serve(domain, AUTHORITY.issue([`mta-sts.${domain}`]), policy);
        announcePolicy(env, domain, '2');
      },
    },
    'sts-none': {
      title: 'delivers in plain text under a policy in mode none',
      mtaSts: policyOf('sts-none', 'none'),
      hosts: { mx: {} },
      messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
    },
    'sts-policy-host-alias': {
      // RFC 8461 §3.3: the certificate and the Host field are those of the policy host, not those of the alias target.
      title: 'enforces a policy whose host is an alias of a host of its provider',
      mtaSts: policyOf('sts-policy-host-alias'),
      hosts: { mx: { tls: AUTHORITY.issue(['mx.sts-policy-host-alias.example']) } },
      messages: { ada: BY_POLICY },
      play: async (run) => {
        run.publish({
          'mta-sts': { A: 'NODATA', CNAME: ['tenant.provider'] },
          'tenant.provider': { A: [run.env.policyHost().address] },
        });
        await run.sendAll();
      },
    },
    'sts-second-host': {
      title: 'never connects to a host that is not in the policy, and delivers to one that is',
      mtaSts: policyOf('sts-second-host', 'enforce', ['mx2.sts-second-host.example']),
      hosts: {
        mx: { tls: AUTHORITY.issue(['mx.sts-second-host.example']) },
        mx2: { tls: AUTHORITY.issue(['mx2.sts-second-host.example']) },
      },
      messages: {
        ada: {
          attempts: [delivered('mx2 dot 250 TLS verified')],
          status: 'delivered',
        },
      },
      connections: { mx: [] },
    },
    'sts-testing-other-host': {
      title: 'delivers to a host that is not in the policy in mode testing',
      mtaSts: policyOf('sts-testing-other-host', 'testing', ['mail.elsewhere.example']),
      hosts: { mx: { tls: selfSigned(['mx.example']) } },
      messages: { ada: OPPORTUNISTIC },
    },
    'sts-testing': {
      title: 'delivers to a host with an invalid certificate under a policy in mode testing',
      mtaSts: policyOf('sts-testing', 'testing'),
      hosts: { mx: { tls: selfSigned(['mx.sts-testing.example']) } },
      messages: { ada: OPPORTUNISTIC },
    },
    'sts-wildcard': {
      title: 'matches a host with the wildcard pattern of a policy',
      mtaSts: policyOf('sts-wildcard', 'enforce', ['*.sts-wildcard.example']),
      hosts: { mx: { tls: AUTHORITY.issue(['mx.sts-wildcard.example']) } },
      messages: { ada: BY_POLICY },
    },
  },
  { programs: ['root'], policyHost: true },
);
