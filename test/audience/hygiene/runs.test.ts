import { describe, expect, it, onTestFinished } from 'vitest';
import { createAddressChecks } from '../../../src/audience/hygiene/checks.ts';
import { createHygieneRuns, hygieneCountsOf } from '../../../src/audience/hygiene/runs.ts';
import { createLog } from '../../../src/core/log.ts';
import { refuse } from '../../../src/core/refusal.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import type { HygieneKind } from '../../../src/store/contacts/hygiene.ts';
import { granted } from '../../support/refusal.ts';
import { CALLER, codeOf, startAudience } from '../setup.ts';
import { fakeResolver } from './fake-resolver.ts';

async function start() {
  const audience = await startAudience();
  const checks = createAddressChecks({
    resolver: fakeResolver({ 'absent.example': 'ENOTFOUND' }),
    monotonic: audience.clock,
  });
  let isFull = false;
  const begin = () => {
    const runs = createHygieneRuns(
      { ...audience, log: createLog({ level: 'silent', hashAddresses: false }) },
      { checks, storageRefusal: () => (isFull ? refuse('UNAVAILABLE', 'full') : null) },
    );
    runs.start();
    onTestFinished(() => runs.stop());
    return runs;
  };
  const runs = begin();
  const ended = async (hygieneId: string) => {
    await expect.poll(() => audience.tables.hygiene.get('acct_one', hygieneId)?.finished_at).not.toBeNull();
    return granted(runs.get('acct_one', hygieneId));
  };
  return {
    ...audience,
    runs,
    begin,
    ended,
    setFull: (full: boolean) => (isFull = full),
    add: async (...emails: string[]) => {
      for (const email of emails) await audience.add(email);
    },
    found: async (hygieneId: string, kind: HygieneKind) => {
      const page = granted(await runs.findings('acct_one', hygieneId, { kind, after: null, limit: 10 }));
      return page.rows.map(({ email, detail, first_email: first }) => [email, detail, first]);
    },
  };
}

describe('an examination of contacts', () => {
  it('counts and lists what it found, until the contact is erased', async () => {
    const { add, runs, ended, found, erasure } = await start();
    await add('ada.l@gmail.com', 'adal@gmail.com', 'info@absent.example', 'bob@example.org');
    const { hygiene_id: hygieneId } = granted(await runs.add('acct_one', null));
    const run = await ended(hygieneId);
    expect(run.status).toBe('completed');
    expect(hygieneCountsOf(run)).toMatchObject({
      examined: 4,
      no_mail_service: 1,
      role: 1,
      duplicate: 1,
      typo: 0,
    });
    expect(await found(hygieneId, 'duplicate')).toEqual([['adal@gmail.com', null, 'ada.l@gmail.com']]);
    expect(await found(hygieneId, 'no_mail_service')).toEqual([['info@absent.example', 'no_domain', null]]);
    await erasure.erase('acct_one', emailIdentifier('info@absent.example'));
    expect(await found(hygieneId, 'no_mail_service')).toEqual([]);
    expect(codeOf(runs.get('acct_two', hygieneId))).toBe('NOT_FOUND');
  });

  it('is one of the members of a group', async () => {
    const { add, runs, ended, subscriptions, groupId } = await start();
    await add('info@example.org', 'admin@example.org');
    granted(await subscriptions.add('acct_one', groupId, { email: 'info@example.org' }, CALLER));
    const { hygiene_id: hygieneId } = granted(await runs.add('acct_one', groupId));
    expect(hygieneCountsOf(await ended(hygieneId))).toMatchObject({ examined: 1, role: 1 });
    expect(codeOf(await runs.add('acct_one', 'sgroup_none'))).toBe('SUBSCRIPTION_GROUP_NOT_FOUND');
  });

  it('is alone in its account, can be cancelled, and the newest three are kept', async () => {
    const { add, runs, ended, setFull, tables, clock } = await start();
    await add('info@example.org');
    setFull(true);
    const waiting = granted(await runs.add('acct_one', null));
    expect(codeOf(await runs.add('acct_one', null))).toBe('LIMIT_REACHED');
    expect(granted(await runs.cancel('acct_one', waiting.hygiene_id)).status).toBe('cancelled');
    expect(codeOf(await runs.cancel('acct_one', waiting.hygiene_id))).toBe('INVALID_STATE');
    setFull(false);
    for (let n = 0; n < 4; n++) {
      clock.advance(1);
      await ended(granted(await runs.add('acct_one', null)).hygiene_id);
    }
    expect(runs.list('acct_one')).toHaveLength(3);
    expect(tables.hygiene.get('acct_one', waiting.hygiene_id)).toBeNull();
  });

  it('begins again after an interruption, and counts each contact once', async () => {
    const { add, runs, begin, ended, writer, tables, found } = await start();
    await add('info@example.org', 'admin@example.org');
    await runs.stop();
    const { hygiene_id: hygieneId } = granted(await runs.add('acct_one', null));
    // As a process that was killed leaves it.
    await writer.run((tx) => {
      tx.hygiene.advance(JSON.stringify({ examined: 1, role: 1 }), hygieneId);
      const contact = tables.contacts.byIdentifier('acct_one', emailIdentifier('info@example.org'));
      tx.hygiene.addFinding({
        hygiene_id: hygieneId,
        kind: 'role',
        contact_seq: contact?.seq ?? 0,
        detail: null,
        first_seq: null,
      });
    });
    begin();
    expect(hygieneCountsOf(await ended(hygieneId))).toMatchObject({ examined: 2, role: 2 });
    expect(await found(hygieneId, 'role')).toHaveLength(2);
  });
});
