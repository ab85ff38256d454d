import { DAY } from '../../../src/core/clock.ts';
import { selfSigned } from '../../support/certificates.ts';
import { freePort } from '../../support/free-port.ts';
import { startSocksServer } from '../../support/socks-server.ts';
import { ADDRESS, type DoctorSetup, HOST } from '../setup.ts';
import { describeBroken } from './rows.ts';

/** Makes the host name lead to this machine, where the test's listener answers; connections elsewhere take 3 s to fail. */
function reachHost({ dns }: DoctorSetup): void {
  dns.set(HOST, 'A', ['127.0.0.1']);
}

describeBroken(
  'a broken network',
  ['resolver', 'source-addresses', 'outbound-smtp', 'egress-proxies', 'secondary-lane', 'listeners'],
  [
    {
      title: 'resolver that answers for names that do not exist',
      check: 'resolver',
      break: ({ dns }) => dns.set('*', 'A', ['198.51.100.80']),
      status: 'failure',
      reason: /answers 198\.51\.100\.80 for names that do not exist/,
      fix: /dns\.resolvers = \["127\.0\.0\.1"\]/,
    },
    {
      title: 'resolver without validation',
      check: 'resolver',
      break: ({ dns }) => dns.set('.', 'NS', ['a.root-servers.test']),
      status: 'warning',
      reason: /does not validate DNSSEC/,
    },
    {
      title: 'resolver that does not answer for the root zone',
      check: 'resolver',
      break: ({ dns }) => dns.set('.', 'NS', 'SERVFAIL'),
      status: 'unknown',
      reason: /whether it validates DNSSEC is not known/,
    },
    {
      title: 'resolver that does not answer',
      check: 'resolver',
      break: async ({ config }) => void (config.dns.resolvers = [`127.0.0.1:${await freePort()}`]),
      status: 'failure',
      reason: /does not answer/,
    },
    {
      title: 'slow resolver',
      check: 'resolver',
      break: ({ dns }) => {
        dns.set('.', 'NS', { values: ['a.root-servers.test'], authenticated: true, delayMs: 500 });
        dns.set('*', 'A', { values: ['192.0.2.1'], delayMs: 500 });
      },
      status: 'warning',
      reason: /A lookup takes \d{3,} ms/,
    },
    {
      title: 'relay of the secondary lane that refuses connections',
      check: 'secondary-lane',
      break: async ({ config }) => {
        config.secondary = {
          type: 'relay',
          host: '127.0.0.1',
          port: await freePort(),
          tls: 'verified',
          allowUnverifiedAuth: false,
          share: 0.1,
          perHour: 1000,
        };
      },
      status: 'failure',
      reason: /The relay of the secondary lane cannot be used: connection refused/,
    },
    {
      title: 'relay that SPF does not include',
      check: 'secondary-lane',
      break: ({ config, big }) => {
        config.secondary = {
          type: 'relay',
          host: big.host,
          port: big.port,
          tls: 'none',
          allowUnverifiedAuth: false,
          share: 0.1,
          perHour: 1000,
        };
      },
      status: 'warning',
      reason: /SPF of the domains does not include the relay/,
      fix: /spfInclude/,
    },
    {
      title: 'pool of the secondary lane without a source address',
      check: 'secondary-lane',
      break: ({ config }) => {
        config.delivery.egress = [
          { name: 'main', address: '127.0.0.1', pools: ['default'] },
          { name: 'second', pools: ['secondary'] },
        ];
      },
      status: 'warning',
      reason: /Mail does not change to the secondary lane: no entry of delivery\.egress/,
      fix: /\[\[delivery\.egress\]\]/,
    },
    {
      title: 'source address that the machine does not have',
      check: 'source-addresses',
      break: ({ config }) =>
        void (config.delivery.egress = [{ name: 'main', address: '192.0.2.77', pools: ['default'] }]),
      status: 'failure',
      subject: '192.0.2.77',
      reason: /no network interface/,
      fix: /^ip address add 192\.0\.2\.77\/32/,
    },
    {
      title: 'unknown source address',
      check: 'source-addresses',
      break: ({ config, dns }) => {
        config.delivery.egress = [];
        dns.remove(HOST);
      },
      status: 'failure',
      reason: /No source address of mail is known/,
    },
    {
      title: 'private source address without publicAddress',
      check: 'source-addresses',
      break: ({ config, machine }) => {
        config.delivery.egress = [{ name: 'main', address: '10.0.0.5', pools: ['default'] }];
        machine.addresses = () => ['10.0.0.5'];
      },
      status: 'warning',
      reason: /behind NAT/,
      fix: /publicAddress/,
    },
    {
      title: 'second public address that the system may send from',
      check: 'source-addresses',
      break: ({ config, machine }) => {
        config.delivery.egress = [];
        machine.addresses = () => [ADDRESS, '198.51.100.9'];
      },
      status: 'warning',
      subject: '198.51.100.9',
      reason: /the system may send from it/,
    },
    {
      title: 'blocked port 25',
      check: 'outbound-smtp',
      break: async ({ config }) => void (config.delivery.port = await freePort()),
      status: 'failure',
      reason: /No mail server can be reached \(mx\.big\.test: the connection was refused\)/,
      fix: /open outbound TCP port/,
    },
    {
      title: 'source address that cannot be bound',
      check: 'outbound-smtp',
      break: ({ config }) =>
        void (config.delivery.egress = [{ name: 'main', address: '192.0.2.77', pools: ['default'] }]),
      status: 'failure',
      subject: /from 192\.0\.2\.77$/,
      reason: /No network interface has the source address/,
    },
    {
      title: 'mail server that refuses the address in its greeting',
      check: 'outbound-smtp',
      break: ({ big }) =>
        big.program({ script: { greeting: '554 5.7.1 192.0.2.25 is blocked, see https://x.test' } }),
      status: 'warning',
      reason: /refuse this address: mx\.big\.test: 554 5\.7\.1 192\.0\.2\.25 is blocked/,
    },
    {
      title: 'mail hosts without an address',
      check: 'outbound-smtp',
      break: ({ dns }) => dns.remove('mx.big.test'),
      status: 'unknown',
      reason: /DNS has no address for mx\.big\.test/,
    },
    {
      title: 'proxy that does not run',
      check: 'egress-proxies',
      break: async ({ config }) => {
        const proxy = `socks5://127.0.0.1:${await freePort()}`;
        config.delivery.egress = [{ name: 'far', address: ADDRESS, pools: ['default'], proxy }];
      },
      status: 'failure',
      subject: /^192\.0\.2\.25 via socks5:/,
      reason: /Mail cannot leave from this address: proxy 127\.0\.0\.1:\d+: .*ECONNREFUSED/,
      fix: /Start the proxy/,
    },
    {
      title: 'proxy that does not reach mail servers',
      check: 'egress-proxies',
      break: async ({ config }) => {
        const { port } = await startSocksServer({ code: 5 });
        const proxy = `socks5://127.0.0.1:${port}`;
        config.delivery.egress = [{ name: 'far', address: ADDRESS, pools: ['default'], proxy }];
      },
      status: 'warning',
      reason: /The proxy works, but does not reach mx\.big\.test: connection refused/,
    },
    {
      title: 'proxy that connects from another address',
      check: 'egress-proxies',
      break: async ({ config }) => {
        const { port } = await startSocksServer({ bound: '203.0.113.9' });
        const proxy = `socks5://127.0.0.1:${port}`;
        config.delivery.egress = [{ name: 'far', address: ADDRESS, pools: ['default'], proxy }];
      },
      status: 'warning',
      reason: /The proxy connects from 203\.0\.113\.9, which the entry does not name/,
      fix: /address = "203\.0\.113\.9"/,
    },
    {
      title: 'another mail server on port 25',
      check: 'listeners',
      break: (setup) => {
        reachHost(setup);
        setup.mx.program({ script: { greeting: '220 debian ESMTP Postfix' } });
      },
      status: 'failure',
      subject: /^MX 127\.0\.0\.1:/,
      reason: /Another mail server answers.*Postfix/,
      fix: /^ss -ltnp/,
    },
    {
      title: 'another mail server with the same host name on port 25',
      check: 'listeners',
      break: (setup) => {
        reachHost(setup);
        setup.mx.program({ script: { greeting: `220 ${HOST} ESMTP Postfix (Debian/GNU)` } });
      },
      status: 'failure',
      subject: /^MX 127\.0\.0\.1:/,
      reason: /Another mail server answers.*Postfix/,
      fix: /^ss -ltnp/,
    },
    {
      title: 'host name for which DNS does not answer',
      check: 'listeners',
      break: ({ dns }) => {
        dns.remove(HOST);
        dns.set(HOST, '*', 'SERVFAIL');
      },
      status: 'unknown',
      subject: `MX ${HOST}`,
      reason: /^Not tested: DNS did not answer for /,
    },
    {
      title: 'host of public.url for which DNS does not answer',
      check: 'listeners',
      break: (setup) => {
        reachHost(setup);
        setup.dns.remove('pages.test');
        setup.dns.set('pages.test', '*', 'SERVFAIL');
      },
      status: 'unknown',
      subject: /^https:\/\/pages\.test/,
      reason: /^Not tested: DNS did not answer for the host of public\.url/,
    },
    {
      title: 'closed MX port at an address of the platform',
      check: 'listeners',
      break: async (setup) => {
        reachHost(setup);
        setup.machine.mxPort = await freePort();
        setup.config.mx.listen = `0.0.0.0:${setup.machine.mxPort}`;
      },
      status: 'failure',
      reason: /cannot be reached: the connection was refused/,
    },
    {
      title: 'closed MX port that must be redirected to the listener',
      check: 'listeners',
      break: async (setup) => {
        reachHost(setup);
        setup.machine.mxPort = await freePort();
      },
      status: 'unknown',
      reason: /Not reachable from this machine/,
    },
    {
      title: 'closed MX port behind NAT',
      check: 'listeners',
      break: async (setup) => {
        reachHost(setup);
        setup.machine.addresses = () => ['10.0.0.5'];
        setup.machine.mxPort = await freePort();
      },
      status: 'unknown',
      reason: /because of NAT or a redirection of the port: test from another machine/,
      fix: /^nc -vz/,
    },
    {
      title: 'MX listener on loopback',
      check: 'listeners',
      options: { settings: { 'mx.listen': '127.0.0.1:2525' } },
      status: 'failure',
      subject: 'mx.listen',
      reason: /bounces and complaints do not arrive/,
      fix: /^mx\.listen = "0\.0\.0\.0:25"$/,
    },
    {
      title: 'MX listener off',
      check: 'listeners',
      options: { settings: { 'mx.listen': 'off' } },
      status: 'warning',
      subject: 'mx.listen',
      reason: /not received/,
    },
    {
      title: 'expired certificate of the public pages',
      check: 'listeners',
      options: { pageCertificate: (authority, names) => authority.issue(names, new Date(Date.now() - DAY)) },
      break: reachHost,
      status: 'failure',
      subject: /^https:\/\/pages\.test/,
      reason: /CERT_HAS_EXPIRED/,
    },
    {
      title: 'certificate of the public pages for another name',
      check: 'listeners',
      options: { pageCertificate: (authority) => authority.issue(['other.test']) },
      break: reachHost,
      status: 'failure',
      reason: /ERR_TLS_CERT_ALTNAME_INVALID/,
    },
    {
      title: 'self-signed certificate of the public pages',
      check: 'listeners',
      options: { pageCertificate: (_, names) => selfSigned(names) },
      break: reachHost,
      status: 'failure',
      reason: /SELF_SIGNED_CERT/,
    },
    {
      title: 'host of public.url without an address',
      check: 'listeners',
      break: (setup) => {
        reachHost(setup);
        setup.dns.remove('pages.test');
      },
      status: 'failure',
      reason: /has no address in DNS: links in mail lead nowhere/,
    },
    {
      title: 'API at the public address',
      check: 'listeners',
      break: (setup) => {
        reachHost(setup);
        setup.config.api.listen = `0.0.0.0:${setup.big.port}`;
      },
      status: 'warning',
      subject: /^API 0\.0\.0\.0/,
      reason: /listens at 127\.0\.0\.1 without encryption/,
      fix: /listen = "127\.0\.0\.1:8080"/,
    },
    {
      title: 'stopped daemon',
      check: 'listeners',
      break: ({ setDaemon }) => setDaemon({ kind: 'stopped' }),
      status: 'unknown',
      reason: /Not checked: the daemon is not running/,
    },
  ],
);
