import { expect, it } from 'vitest';
import { lazyProperties } from '../../src/core/lazy-properties.ts';

it('creates each property once, at its first use', () => {
  const created: string[] = [];
  const create = (name: string) => {
    created.push(name);
    return { name };
  };
  const parts = lazyProperties({ one: () => create('one'), two: () => create('two') });
  expect([Object.keys(parts), created]).toEqual([['one', 'two'], []]);
  expect(parts.two).toBe(parts.two);
  expect(created).toEqual(['two']);
  expect(parts).toEqual({ one: { name: 'one' }, two: { name: 'two' } });
  expect(created).toEqual(['two', 'one']);
});

it('retries the creation of a property that failed', () => {
  let attempts = 0;
  const parts = lazyProperties({
    part: () => {
      attempts++;
      if (attempts === 1) throw new Error('not yet');
      return attempts;
    },
  });
  expect(() => parts.part).toThrow('not yet');
  expect(parts.part).toBe(2);
});
