import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Created } from '../../src/cli/init/create.ts';
import { mxNote, nextSteps } from '../../src/cli/init/next-steps.ts';
import { programName } from '../../src/cli/program-name.ts';

const account = { accountId: 'acct_1', keys: { setup: 'key_s', transactional: 'key_t' } };
const domain = {
  domainId: 'dom_1',
  name: 'shop.example',
  records: { dnsRecords: [], recommendedDnsRecords: [] },
};

function createdWith(changes: Partial<Created>): Created {
  return {
    configFile: '/etc/postrider/postrider.toml',
    dataDir: '/var/lib/postrider',
    apiListen: '127.0.0.1:8080',
    mxListen: '0.0.0.0:25',
    sourceAddress: null,
    account,
    hasFooter: true,
    domain,
    ...changes,
  };
}

function commandsAfter(changes: Partial<Created>): string[] {
  return nextSteps(createdWith(changes), 'postrider').map(({ command }) => command);
}

describe('the next commands after init', () => {
  it('lead to the first message', () => {
    const [start, verify, send] = commandsAfter({});
    expect(start).toBe('systemctl start postrider');
    expect(verify).toBe('postrider domain verify shop.example');
    expect(send).toContain(
      "curl -sS http://127.0.0.1:8080/transactional/send -H 'X-Id: acct_1' -H 'X-Api-Key: key_t'",
    );
    expect(send).toContain('"from":"hello@shop.example"');
  });

  it('name the instance, whose unit is not enabled yet', () => {
    const [start, verify] = commandsAfter({ configFile: '/etc/postrider-shop/postrider.toml' });
    expect(start).toBe('systemctl enable --now postrider@shop');
    expect(verify).toBe('postrider --instance shop domain verify shop.example');
  });

  it.each([
    ['0.0.0.0:9', '127.0.0.1:9'],
    ['[::]:9', '127.0.0.1:9'],
    ['[2001:db8::1]:9', '[2001:db8::1]:9'],
  ])('call an API that listens on %s at %s', (apiListen, authority) => {
    expect(commandsAfter({ apiListen })[2]).toContain(`curl -sS http://${authority}/`);
  });

  it('complete what is missing: the footer, the domain, the account', () => {
    expect(commandsAfter({ hasFooter: false })[1]).toContain('postrider account update acct_1 --company');
    expect(commandsAfter({ domain: null })[1]).toContain('postrider domain add example.com --account acct_1');
    expect(commandsAfter({ account: null, domain: null })[1]).toContain('postrider account create');
  });

  it.each<[string, Partial<Created>, string]>([
    ['all defaults', { hasFooter: false, domain: null }, "-H 'X-Id: acct_1' -H 'X-Api-Key: key_t'"],
    ['no account', { account: null, domain: null }, "-H 'X-Id: ACCOUNT_ID'"],
    ['no footer', { hasFooter: false }, '"from":"hello@shop.example"'],
  ])('end with the command that sends, with %s', (_, changes, text) => {
    expect(commandsAfter(changes).at(-1)).toMatch(/^curl -sS http.*\/transactional\/send/);
    expect(commandsAfter(changes).at(-1)).toContain(text);
  });

  it('name the placeholders of the command that sends', () => {
    const notes = (changes: Partial<Created>) => nextSteps(createdWith(changes), 'postrider').at(-1)?.note;
    expect(notes({})).toBe('with your own values instead of you@example.org');
    expect(notes({ account: null, domain: null })).toBe(
      'with your own values instead of ACCOUNT_ID, TRANSACTIONAL_KEY, example.com, you@example.org',
    );
  });

  it('name a configuration that is not found by itself', () => {
    expect(commandsAfter({ configFile: '/srv/mail.toml' })[0]).toContain('mail.toml serve');
  });
});

describe('the note on the MX listener', () => {
  it('states that bounces do not arrive at another port than 25', () => {
    expect(mxNote(createdWith({ mxListen: '127.0.0.1:2525' }))).toMatch(
      /^The MX listener is at 127\.0\.0\.1:2525\. .* do not arrive until port 25 is redirected to it, or until mx\.listen in \/etc\/postrider\/postrider\.toml is/,
    );
  });

  it('names the address of one of several daemons', () => {
    const changes = { mxListen: '127.0.0.1:2525', sourceAddress: '192.0.2.7' };
    expect(mxNote(createdWith(changes))).toContain('is "192.0.2.7:25":');
  });

  it.each(['0.0.0.0:25', '[::]:25', 'off'])('is missing with mx.listen %s', (mxListen) => {
    expect(mxNote(createdWith({ mxListen }))).toBeNull();
  });
});

describe('the name of the program', () => {
  const clone = mkdtempSync(join(tmpdir(), "postrider's-"));
  afterAll(() => rmSync(clone, { recursive: true }));

  it('is what works in the current directory', () => {
    expect(programName(tmpdir(), clone)).toBe('postrider');
    writeFileSync(join(clone, 'package-lock.json'), '');
    expect(programName(clone, clone)).toBe('npx postrider');
    expect(programName(join(clone, 'config'), clone)).toBe('npx postrider');
    const file = execFileSync('sh', ['-c', `echo ${programName(tmpdir(), clone)}`], { encoding: 'utf8' });
    expect(file).toBe(`node ${clone}/dist/main.js\n`);
  });
});
