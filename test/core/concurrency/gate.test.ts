import { expect, it } from 'vitest';
import { createGate } from '../../../src/core/concurrency/gate.ts';

/** Work that lasts until the test ends it. */
function jobs() {
  const running: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  const job = (name: string) => () =>
    new Promise<string>((resolve, reject) => {
      running.push(name);
      ends.set(name, (error) => {
        running.splice(running.indexOf(name), 1);
        if (error) reject(error);
        else resolve(name);
      });
    });
  const end = async (name: string, error?: Error) => {
    ends.get(name)?.(error);
    await new Promise(setImmediate);
  };
  return { running, job, end };
}

it('limits concurrent work in total and per key, and starts waiting work in order of arrival', async () => {
  const { running, job, end } = jobs();
  const gate = createGate({ concurrency: 3, perKey: 1, maxWaiting: 10 });
  const all = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1', 'd1'].map((name) => gate.run(name[0] ?? '', job(name)));
  await new Promise(setImmediate);
  expect(running).toEqual(['a1', 'b1', 'c1']);
  await end('b1');
  expect(running).toEqual(['a1', 'c1', 'b2']);
  await end('c1');
  expect(running).toEqual(['a1', 'b2', 'd1']);
  for (const name of ['a1', 'b2', 'd1', 'a2', 'a3']) await end(name);
  expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'b1', 'b2', 'c1', 'd1']);
});

it('starts the work of the key with the least running work first', async () => {
  const { running, job, end } = jobs();
  const gate = createGate({ concurrency: 4, perKey: 3, maxWaiting: 10 });
  const names = ['a1', 'a2', 'a3', 'b1', 'a4', 'b2', 'c1', 'b3'];
  const all = names.map((name) => gate.run(name[0] ?? '', job(name)));
  await new Promise(setImmediate);
  expect(running).toEqual(['a1', 'a2', 'a3', 'b1']);
  await end('a1');
  expect(running).toEqual(['a2', 'a3', 'b1', 'c1']);
  await end('c1');
  expect(running).toEqual(['a2', 'a3', 'b1', 'b2']);
  await end('a2');
  expect(running).toEqual(['a3', 'b1', 'b2', 'a4']);
  for (const name of ['a3', 'b1', 'b2', 'a4', 'b3']) await end(name);
  expect(await Promise.all(all)).toEqual(names);
});

it('limits the waiting work of a key', async () => {
  const { job, end } = jobs();
  const gate = createGate({ concurrency: 1, perKey: 1, maxWaiting: 10, maxWaitingPerKey: 1 });
  const admitted = [gate.run('a', job('a1')), gate.run('a', job('a2')), gate.run('b', job('b1'))];
  expect(await gate.run('a', job('a3'))).toBeNull();
  for (const name of ['a1', 'a2', 'b1']) await end(name);
  expect(await Promise.all(admitted)).toEqual(['a1', 'a2', 'b1']);
});

it('continues after failed work', async () => {
  const { running, job, end } = jobs();
  const gate = createGate({ concurrency: 1, perKey: 1, maxWaiting: 10 });
  const failing = expect(gate.run('a', job('a1'))).rejects.toThrow('broken');
  const next = gate.run('a', job('a2'));
  await new Promise(setImmediate);
  await end('a1', new Error('broken'));
  await failing;
  expect(running).toEqual(['a2']);
  await end('a2');
  expect(await next).toBe('a2');
});

it('limits waiting work, and abandons it when it is closed', async () => {
  const { running, job, end } = jobs();
  const gate = createGate({ concurrency: 1, perKey: 1, maxWaiting: 1 });
  const first = gate.run('a', job('a1'));
  const waiting = gate.run('a', job('a2'));
  expect(await gate.run('a', job('a3'))).toBeNull();
  gate.close();
  expect(await waiting).toBeNull();
  expect(await gate.run('b', job('b1'))).toBeNull();
  expect(running).toEqual(['a1']);
  await end('a1');
  expect(await first).toBe('a1');
});
