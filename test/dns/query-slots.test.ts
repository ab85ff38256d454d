import { expect, it } from 'vitest';
import { createQuerySlots } from '../../src/dns/query-slots.ts';

/** Slots whose queries last until the test ends them. */
function startSlots(total: number, maxWaitingPerOwner = 1000) {
  const slots = createQuerySlots({ total, maxWaitingPerOwner });
  const running: string[] = [];
  const ends = new Map<string, () => void>();
  const settled = () => new Promise(setImmediate);
  return {
    running,
    /** Returns false when too many queries of the owner are waiting. */
    ask: async (name: string) => {
      const [owner = ''] = name;
      const release = slots.take(owner, () => running.push(name));
      await settled();
      if (release === null) return false;
      ends.set(name, release);
      return true;
    },
    end: async (name: string) => {
      if (running.includes(name)) running.splice(running.indexOf(name), 1);
      ends.get(name)?.();
      await settled();
    },
  };
}

it('leaves an owner at most as many slots as remain for all others', async () => {
  const { ask, running } = startSlots(8);
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5', 'a6']) await ask(name);
  expect(running).toEqual(['a1', 'a2', 'a3', 'a4']);
  for (const name of ['b1', 'b2', 'b3', 'c1', 'd1']) await ask(name);
  expect(running).toEqual(['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1', 'd1']);
});

it('starts the query of the owner with the fewest in progress first', async () => {
  const { ask, end, running } = startSlots(2);
  for (const name of ['a1', 'a2', 'b1', 'c1']) await ask(name);
  expect(running).toEqual(['a1', 'b1']);
  await end('b1');
  expect(running).toEqual(['a1', 'c1']);
  await ask('c2');
  await end('a1');
  expect(running).toEqual(['c1', 'a2']);
});

it('removes a query that no longer waits, and refuses those above the limit of an owner', async () => {
  const { ask, end, running } = startSlots(2, 2);
  expect(await Promise.all(['a1', 'a2', 'a3', 'a4', 'b1'].map(ask))).toEqual([true, true, true, false, true]);
  await end('a2');
  expect(await ask('a5')).toBe(true);
  await end('a1');
  await end('b1');
  expect(running).toEqual(['a3']);
  await end('a3');
  expect(running).toEqual(['a5']);
});
