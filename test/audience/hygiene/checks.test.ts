import { describe, expect, it } from 'vitest';
import { createAddressChecks } from '../../../src/audience/hygiene/checks.ts';
import { heldClock } from '../../support/store.ts';
import { type FakeDomain, fakeResolver } from './fake-resolver.ts';

function start(domains: Readonly<Record<string, FakeDomain>> = {}) {
  const resolver = fakeResolver(domains);
  const checks = createAddressChecks({ resolver, monotonic: heldClock() });
  const run = checks.begin('acct_one');
  /** The findings of addresses, each as `kind` or `kind detail`. */
  const examine = async (...emails: string[]) => {
    const { findings, unchecked } = await run.examine(emails.map((email, id) => ({ id, email })));
    const texts = findings.map((found) =>
      found.map(({ kind, detail, of }) => [kind, detail, of].filter((part) => part !== null).join(' ')),
    );
    return { texts, unchecked };
  };
  return { checks, resolver, run, examine };
}

describe('the examination of addresses', () => {
  it.each<[string, string[]]>([
    ['ada@example.org', []],
    ['ada@host.example', []],
    ['ada@null.example', ['no_mail_service null_mx']],
    ['ada@absent.example', ['no_mail_service no_domain']],
    ['ada@empty.example', ['no_mail_service no_host']],
    ['ada@broken.example', []],
    ['Info@example.org', ['role']],
    ['info+shop@example.org', ['role']],
    ['information@example.org', []],
    ['ada@mailinator.com', ['disposable']],
    ['ada@eu.mailinator.com', ['disposable']],
    ['ada@gmial.com', ['typo gmail.com']],
    ['ada@gmail.con', ['no_mail_service no_domain', 'typo gmail.com']],
    ['ada@hotmaail.com', ['no_mail_service no_domain', 'typo hotmail.com']],
    ['ada@gmall.com', []],
    ['ada@localhost', [expect.stringMatching(/^syntax /)]],
    ['ada ada@example.org', [expect.stringMatching(/^syntax /)]],
  ])('finds in %s: %j', async (email, expected) => {
    const { examine } = start({
      'host.example': 'host',
      'null.example': 'null-mx',
      'absent.example': 'ENOTFOUND',
      'empty.example': 'empty',
      'broken.example': 'ESERVFAIL',
      'gmail.con': 'ENOTFOUND',
      'hotmaail.com': 'ENOTFOUND',
    });
    const { texts, unchecked } = await examine(email);
    expect(texts).toEqual([expected]);
    expect(unchecked).toBe(email.includes('broken') ? 1 : 0);
  });

  it('reports the addresses of one mailbox by the rules of its provider, across batches', async () => {
    const { examine, run } = start();
    const { texts } = await examine(
      'ada.lovelace@gmail.com',
      'adalovelace+shop@googlemail.com',
      'ada.lovelace@example.org',
      'adalovelace@example.org',
      'ada+a@outlook.com',
      'ada@hotmail.com',
      'ada@outlook.com',
    );
    expect(texts).toEqual([[], ['duplicate 0'], [], [], [], [], ['duplicate 4']]);
    const { findings } = await run.examine([{ id: 99, email: 'AdaLovelace@gmail.com' }]);
    expect(findings).toEqual([[{ kind: 'duplicate', detail: null, of: 0 }]]);
  });

  it('looks each domain up once, large providers never', async () => {
    const { examine, resolver, checks } = start();
    await examine('a@example.org', 'b@example.org', 'c@gmail.com');
    await examine('d@example.org');
    await checks.begin('acct_two').examine([{ id: 1, email: 'e@example.org' }]);
    expect(resolver.asked).toEqual(['mx example.org']);
  });

  it('waits no longer for domains that never answer, and counts them as unchecked', async () => {
    const { checks } = start({ 'never.example': 'never' });
    const run = checks.begin('acct_one', { waitMs: 20 });
    const addresses = ['a@never.example', 'b@never.example', 'c@example.org'].map((email, id) => ({
      id,
      email,
    }));
    expect(await run.examine(addresses)).toEqual({ findings: [[], [], []], unchecked: 2 });
    // The time of the run is over.
    expect(await run.examine([{ id: 3, email: 'd@other.example' }])).toEqual({
      findings: [[]],
      unchecked: 1,
    });
  });
});
