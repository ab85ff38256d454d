import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { configToml } from '../../src/cli/init/config-file.ts';
import { everyAddress } from '../../src/cli/init/detect.ts';
import type { InitPlan, TlsChoice } from '../../src/cli/init/plan.ts';
import { silentPrompt } from '../../src/cli/init/prompt.ts';
import { findUser } from '../../src/cli/init/service-user.ts';
import { loadConfig } from '../../src/config/load.ts';

const dir = mkdtempSync(join(tmpdir(), 'postrider-init-'));
afterAll(() => rmSync(dir, { recursive: true }));

function planWith(changes: Partial<InitPlan>): InitPlan {
  return {
    hostname: 'mail.example.net',
    dataDir: '/var/lib/postrider',
    apiListen: '127.0.0.1:8080',
    publicListen: '127.0.0.1:8081',
    mxListen: '0.0.0.0:25',
    submissionListen: 'off',
    consoleListen: null,
    publicAddress: null,
    sourceAddress: null,
    tls: { kind: 'none' },
    account: null,
    domain: null,
    hasOtherSenders: false,
    privateWebhooks: null,
    ...changes,
  };
}

function load(plan: InitPlan) {
  const file = join(dir, 'postrider.toml');
  writeFileSync(file, configToml(plan, file));
  return loadConfig({ file, env: {} });
}

describe('the configuration file', () => {
  it.each<[TlsChoice, string]>([
    [{ kind: 'none' }, 'http://track.mail.example.net'],
    [{ kind: 'acme', email: 'postmaster@example.net' }, 'https://track.mail.example.net'],
    [{ kind: 'acme', email: null }, 'https://track.mail.example.net'],
    [{ kind: 'files', certificateFile: '/a.pem', keyFile: '/a.key' }, 'https://track.mail.example.net'],
  ])('is valid with %j', (tls, url) => {
    const config = load(planWith({ tls, submissionListen: '0.0.0.0:587', publicAddress: '192.0.2.7' }));
    expect(config).toMatchObject({
      hostname: 'mail.example.net',
      data: { dir: '/var/lib/postrider' },
      public: { url, tls: { listen: tls.kind === 'acme' ? '0.0.0.0:443' : 'off' } },
      mx: { listen: '0.0.0.0:25', tls: tls.kind === 'files' ? { certificateFile: '/a.pem' } : {} },
      submission: { listen: '0.0.0.0:587' },
      delivery: { egress: [{ name: 'main', publicAddress: '192.0.2.7' }] },
    });
  });

  it('listens and sends at the source address of one of several daemons', () => {
    const plan = planWith({
      tls: { kind: 'acme', email: null },
      publicListen: '192.0.2.7:80',
      consoleListen: '127.0.0.1:8085',
      publicAddress: '198.51.100.7',
      sourceAddress: '192.0.2.7',
    });
    expect(load(plan)).toMatchObject({
      public: { tls: { listen: '192.0.2.7:443' } },
      console: { listen: '127.0.0.1:8085' },
      delivery: { egress: [{ address: '192.0.2.7', publicAddress: '198.51.100.7' }] },
    });
    const [entry] = load({ ...plan, publicAddress: '192.0.2.7' }).delivery.egress;
    expect([entry?.address, entry?.publicAddress]).toEqual(['192.0.2.7', undefined]);
  });

  it.each([
    [true, 'any'],
    [false, 'enforced'],
  ] as const)(
    'accepts the DMARC policies that the domain needs: other senders %s, %s',
    (hasOtherSenders, dmarcPolicy) => {
      expect(load(planWith({ hasOtherSenders })).verification).toEqual({ dmarcPolicy });
    },
  );

  it.each([
    [true, true],
    [false, false],
    [null, undefined],
  ])(
    'states whether webhooks may call private addresses only after an answer: %s',
    (privateWebhooks, set) => {
      const plan = planWith({ privateWebhooks });
      expect(load(plan).webhooks.allowPrivateNetworks).toBe(set);
      expect(configToml(plan, '/postrider.toml').includes('[webhooks]')).toBe(privateWebhooks !== null);
    },
  );

  it('quotes values that contain quotes and backslashes', () => {
    const dataDir = '/srv/a "b" \\c';
    expect(load(planWith({ dataDir })).data.dir).toBe(dataDir);
  });

  it('contains relative paths as paths relative to its directory', () => {
    const text = configToml(planWith({ dataDir: 'data' }), join(process.cwd(), 'config/postrider.toml'));
    expect(text).toContain('dir = "../data"');
  });
});

describe('listeners that others reach', () => {
  const none = { kind: 'absent' as const, nameExists: true };
  const records = (...addresses: string[]) =>
    addresses.length === 0 ? none : { kind: 'records' as const, records: addresses };
  const view = (a: string[], aaaa: string[]) => ({
    a: async () => records(...a),
    aaaa: async () => records(...aaaa),
  });

  it.each([
    ['of a name with an IPv4 address', ['192.0.2.7'], [], '192.0.2.7', '0.0.0.0'],
    ['of a name with both', ['192.0.2.7'], ['2001:db8::7'], '192.0.2.7', '[::]'],
    ['of a name with an IPv6 address alone', [], ['2001:db8::7'], '2001:db8::7', '[::]'],
    ['of a name that is not published, with an IPv6 address', [], [], '2001:db8::7', '[::]'],
    ['of a name that is not published', [], [], '', '0.0.0.0'],
  ])('%s', async (_, a, aaaa, publicAddress, host) => {
    expect(await everyAddress(view(a, aaaa), 'mail.example.net', publicAddress)).toBe(host);
  });

  it('obtain certificates over both families', () => {
    const acme = { kind: 'acme', email: null } as const;
    expect(load(planWith({ tls: acme, publicListen: '[::]:80', mxListen: '[::]:25' }))).toMatchObject({
      public: { listen: '[::]:80', tls: { listen: '[::]:443' } },
      mx: { listen: '[::]:25' },
    });
  });
});

describe('without a terminal', () => {
  const question = { option: '--x', text: 'X', reason: 'Because.' };

  it('accepts defaults only with --yes, and collects the missing options', async () => {
    const [strict, lenient] = [silentPrompt(false), silentPrompt(true)];
    for (const prompt of [strict, lenient]) {
      await prompt.ask({ ...question, fallback: 'a' });
      await prompt.ask({ ...question, option: '--y', fallback: null });
      await prompt.ask({ ...question, option: '--z', fallback: '' });
    }
    expect(strict.missing()).toEqual(['--x', '--y']);
    expect(lenient.missing()).toEqual(['--y']);
  });
});

it('finds the user of the package, and never root', () => {
  const passwd = join(dir, 'passwd');
  writeFileSync(
    passwd,
    'root:x:0:0::/root:/bin/sh\npostrider:x:990:991::/var/lib/postrider:/usr/sbin/nologin\n',
  );
  expect(findUser('postrider', passwd)).toEqual({ uid: 990, gid: 991 });
  expect(findUser('root', passwd)).toBeNull();
  expect(findUser('nobody', passwd)).toBeNull();
  expect(findUser('postrider', join(dir, 'none'))).toBeNull();
});
