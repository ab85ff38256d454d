import { describe, expect, it } from 'vitest';
import { HOUR, iso, MINUTE } from '../../src/core/clock.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { parseIdempotencyKey } from '../../src/sending/idempotency.ts';
import { refused } from '../support/refusal.ts';
import { insertAccount, insertDomain } from '../support/store.ts';
import { accepted, startAcceptance } from './acceptance.ts';

describe('an idempotency key', () => {
  const KEY = {
    idempotency: { endpoint: 'transactional/send', key: 'b2b6a1de-0000-4000-8000-000000000001' },
  };

  it('replays the first response byte for byte and sends nothing', async () => {
    const { send, stored } = startAcceptance();
    const first = accepted(await send({}, KEY));
    expect(await send({}, KEY)).toEqual({ kind: 'replayed', status: 200, body: first.body });
    expect(stored()).toHaveLength(1);
  });

  it('matches the same body with fields in another order', async () => {
    const { send, stored } = startAcceptance();
    accepted(await send({ templateVariables: { name: 'x', order: { number: 1 } } }, KEY));
    const again = await send({ templateVariables: { order: { number: 1 }, name: 'x' } }, KEY);
    expect(isRefusal(again) ? again.code : again.kind).toBe('replayed');
    expect(stored()).toHaveLength(1);
  });

  it('replays the response after the scheduled time has passed', async () => {
    const { send, clock } = startAcceptance();
    const at = { scheduledAt: iso(clock.now() + MINUTE) };
    const { body } = accepted(await send(at, KEY));
    clock.advance(HOUR);
    expect(await send(at, KEY)).toMatchObject({ kind: 'replayed', body });
    const { code, extras } = refused(await send(at));
    expect([code, extras.details?.[0]?.field]).toEqual(['VALIDATION_ERROR', 'scheduledAt']);
  });

  it('is refused with another body and is separate for each account', async () => {
    const { send, tables, clock } = startAcceptance();
    insertAccount(tables, 'acct_two', clock.now());
    insertDomain(tables, { account_id: 'acct_two', domain_id: 'domain_2', name: 'example.com' }, clock.now());
    accepted(await send({}, KEY));
    expect(refused(await send({ to: 'b@example.net' }, KEY)).code).toBe('IDEMPOTENCY_KEY_REUSED');
    accepted(await send({ to: 'b@example.net' }, { ...KEY, accountId: 'acct_two' }));
  });

  it('is in progress for concurrent requests', async () => {
    const { send, stored } = startAcceptance();
    const results = await Promise.all(Array.from({ length: 50 }, () => send({}, KEY)));
    expect(results.filter((result) => !isRefusal(result))).toHaveLength(1);
    expect(new Set(results.filter(isRefusal).map(({ code }) => code))).toEqual(
      new Set(['IDEMPOTENCY_IN_PROGRESS']),
    );
    expect(stored()).toHaveLength(1);
  });

  it('can be used again after a refusal', async () => {
    const { send } = startAcceptance();
    expect(refused(await send({ from: 'a@elsewhere.test' }, KEY)).code).toBe('DOMAIN_NOT_REGISTERED');
    accepted(await send({}, KEY));
  });

  it('expires', async () => {
    const { send, stored, clock } = startAcceptance();
    accepted(await send({}, KEY));
    clock.advance(24 * HOUR + 1);
    accepted(await send({ to: 'b@example.net' }, KEY));
    expect(stored()).toHaveLength(2);
  });

  it.each([
    ['abc', 'abc'],
    ['"abc"', 'abc'],
    ['a'.repeat(255), 'a'.repeat(255)],
    ['a'.repeat(256), null],
    ['', null],
    ['a\u0007', null],
    ['ä', null],
  ])('is read from the header: %j', (header, expected) => {
    expect(parseIdempotencyKey(header)).toBe(expected);
  });
});
