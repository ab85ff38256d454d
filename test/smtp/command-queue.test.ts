import { describe, expect, it } from 'vitest';
import { createCommandQueue } from '../../src/smtp/paced-server.ts';

function setUp(batchSize: number) {
  const deferred: (() => void)[] = [];
  const pauses: boolean[] = [];
  const done: string[] = [];
  const turns = createCommandQueue({
    batchSize,
    defer: (callback, hasBacklog) => {
      deferred.push(callback);
      pauses.push(hasBacklog);
    },
  });
  return {
    turns,
    done,
    pauses,
    run: (network: string, ...names: string[]) => {
      for (const name of names) turns.run(network, () => void done.push(name));
    },
    nextTurn: () => {
      for (const callback of deferred.splice(0)) callback();
    },
    isIdle: () => deferred.length === 0,
  };
}

describe('the command queue', () => {
  it('runs a limited number of commands per batch', () => {
    const { run, done, nextTurn, turns, isIdle } = setUp(2);
    run('a', '1', '2', '3', '4', '5');
    expect(done).toEqual(['1', '2']);
    nextTurn();
    expect(done).toEqual(['1', '2', '3', '4']);
    expect(turns.waiting()).toBe(1);
    nextTurn();
    expect(done).toHaveLength(5);
    nextTurn();
    expect(isIdle()).toBe(true);
  });

  it('alternates between networks', () => {
    const { run, done, nextTurn } = setUp(1);
    run('a', 'a1', 'a2', 'a3', 'a4');
    run('b', 'b1', 'b2');
    run('quiet', 'q1');
    for (let n = 0; n < 6; n++) nextTurn();
    expect(done).toEqual(['a1', 'a2', 'b1', 'q1', 'a3', 'b2', 'a4']);
  });

  it('pauses between batches only while commands wait', () => {
    const { run, nextTurn, pauses } = setUp(2);
    run('a', '1', '2', '3', '4', '5');
    nextTurn();
    nextTurn();
    expect(pauses).toEqual([false, true]);
  });

  it('limits a client whose commands trigger further ones', () => {
    const { turns, nextTurn } = setUp(3);
    let count = 0;
    const command = () => {
      count++;
      turns.run('a', command);
    };
    turns.run('a', command);
    expect(count).toBe(3);
    nextTurn();
    expect(count).toBe(6);
  });
});
