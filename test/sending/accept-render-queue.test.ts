import { describe, expect, it } from 'vitest';
import { createRenderQueue, renderedSize } from '../../src/sending/accept.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

/** A queue whose work runs until it is ended by name. */
function setUp() {
  const queue = createRenderQueue();
  const running: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (name: string, accountId: string, size: number): Promise<void> =>
    queue.run(accountId, size, async () => {
      running.push(name);
      await new Promise<void>((resolve) => ends.set(name, resolve));
    });
  const end = async (name: string) => {
    ends.get(name)?.();
    await new Promise(setImmediate);
  };
  return { queue, running, run, end };
}

describe('messages that are rendered at the same time', () => {
  it('include large ones up to the limit; the next begins when one has ended', async () => {
    const { running, run, end } = setUp();
    for (const name of ['a', 'b', 'c']) void run(name, 'one', 4 * MIB);
    await new Promise(setImmediate);
    expect(running).toEqual(['a', 'b']);
    await end('a');
    expect(running).toEqual(['a', 'b', 'c']);
  });

  it('are taken from several accounts in turns', async () => {
    const { running, run, end } = setUp();
    for (const name of ['a1', 'a2', 'a3', 'a4']) void run(name, 'a', 8 * MIB);
    void run('b1', 'b', 8 * MIB);
    await new Promise(setImmediate);
    for (const name of ['a1', 'a2', 'b1']) await end(name);
    expect(running).toEqual(['a1', 'a2', 'b1', 'a3']);
  });

  it('include all small ones, and medium ones together with large ones', async () => {
    const { running, run } = setUp();
    void run('large', 'a', 8 * MIB);
    void run('waits', 'a', 8 * MIB);
    for (let n = 0; n < 500; n++) void run(`small${n}`, 'a', 60 * KIB);
    void run('medium', 'b', 500 * KIB);
    await new Promise(setImmediate);
    expect(running).toHaveLength(502);
    expect(running).not.toContain('waits');
  });

  it('include one above the limit, alone', async () => {
    const { running, run, end } = setUp();
    void run('first', 'a', MIB);
    void run('huge', 'b', 30 * MIB);
    void run('last', 'c', MIB);
    await new Promise(setImmediate);
    expect(running).toEqual(['first']);
    await end('first');
    expect(running).toEqual(['first', 'huge']);
    await end('huge');
    expect(running).toEqual(['first', 'huge', 'last']);
  });

  it('release their share when the work fails', async () => {
    const { queue, running, run } = setUp();
    await expect(queue.run('a', 8 * MIB, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    void run('next', 'a', 8 * MIB);
    await new Promise(setImmediate);
    expect(running).toEqual(['next']);
  });
});

describe('the size of a message', () => {
  const part = (length: number) => ({ name: 'a', contentType: 'a/b', content: 'x'.repeat(length) });
  const send = {
    attachments: [part(100)],
    alternatives: [{ ...part(1000), position: 'after-html' as const }],
    variables: { short: 'x', long: { name: 'x'.repeat(30) } },
  };
  const content = { html: '{{short}}{{long.name}}', text: null };

  it('includes attachments, alternatives, and each variable with the length of the longest one', () => {
    expect(renderedSize(send, content, 1)).toBe(1100 + content.html.length + 2 * 30);
  });

  it('counts each content, up to the size above which a send is refused', () => {
    expect(renderedSize(send, content, 50)).toBe(50 * renderedSize(send, content, 1));
    expect(renderedSize({ ...send, attachments: [part(MIB)] }, content, 50)).toBe(16 * MIB);
  });
});
