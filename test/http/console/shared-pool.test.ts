import { expect, it } from 'vitest';
import { createSharedPool, type Holder } from '../../../src/http/console/shared-pool.ts';

const LIMITS = { total: 16, ofPerson: 2, ofAccount: 4, forOperators: 4 };

function start() {
  const pool = createSharedPool(LIMITS);
  const take = (personId: string, accountId: string | null, operator = false) => {
    const holder: Holder = { personId, accountId, operator };
    return pool.take(holder);
  };
  const resultOf = (...holder: Parameters<typeof take>) => {
    const taken = take(...holder);
    return typeof taken === 'string' ? taken : 'taken';
  };
  return { take, resultOf };
}

it('limits the places of a person in all accounts', () => {
  const { resultOf } = start();
  expect(['a', 'b', 'c'].map((account) => resultOf('ada', account))).toEqual(['taken', 'taken', 'person']);
});

it('limits the places of the members of an account', () => {
  const { resultOf } = start();
  const results = Array.from({ length: 6 }, (_, n) => resultOf(`person_${n}`, 'a'));
  expect(results).toEqual(['taken', 'taken', 'taken', 'taken', 'account', 'account']);
  expect(resultOf('ada', 'b')).toBe('taken');
});

it('leaves places for operators, in every account', () => {
  const { resultOf } = start();
  for (let n = 0; n < 12; n++) expect(resultOf(`person_${n}`, `account_${n % 3}`)).toBe('taken');
  expect(resultOf('ada', 'b')).toBe('pool');
  expect(resultOf('ops', 'account_0', true)).toBe('taken');
  expect(resultOf('ops', null, true)).toBe('taken');
  expect(resultOf('ops', null, true)).toBe('person');
  expect([resultOf('root', null, true), resultOf('root', 'b', true)]).toEqual(['taken', 'taken']);
  expect(resultOf('third', 'b', true)).toBe('pool');
});

it('does not count operators among the members of an account', () => {
  const { resultOf } = start();
  for (const operator of ['x', 'y']) for (let n = 0; n < 2; n++) resultOf(operator, 'a', true);
  expect(resultOf('ada', 'a')).toBe('taken');
});

it('has the place again after it is returned, once', () => {
  const { take, resultOf } = start();
  const release = take('ada', 'a');
  if (typeof release === 'string') throw new Error(release);
  expect(resultOf('ada', 'a')).toBe('taken');
  expect(resultOf('ada', 'a')).toBe('person');
  release();
  release();
  expect(resultOf('ada', 'a')).toBe('taken');
  expect(resultOf('ada', 'a')).toBe('person');
});
