import { readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../../src/core/log.ts';
import { LOW_PRIORITY } from '../../../src/core/thread-priority.ts';
import { createMailParser } from '../../../src/smtp/parser/mail-parser.ts';

/** The number of threads of this process with this nice value (proc_pid_stat(5)). */
function threadsAt(nice: number): number {
  return readdirSync('/proc/self/task').filter((id) => {
    const stat = readFileSync(`/proc/self/task/${id}/stat`, 'latin1');
    const [, fields = ''] = /\) (.*)$/s.exec(stat) ?? [];
    return Number(fields.split(' ')[16]) === nice;
  }).length;
}

it.skipIf(process.platform !== 'linux' || getPriority() >= LOW_PRIORITY)(
  'the thread that parses mail of strangers yields to the event loop, and no other thread does',
  async () => {
    const before = threadsAt(LOW_PRIORITY);
    const parser = createMailParser(createLog({ level: 'silent', hashAddresses: false }));
    onTestFinished(() => parser.stop());
    const raw = Buffer.from('From: a@example.com\r\nSubject: s\r\n\r\ntext\r\n');
    const origin = { priority: 'normal', caller: 'acct_one', subject: 'acct_one' } as const;
    await parser.parse({ purpose: 'submission', raw }, origin);
    expect(threadsAt(LOW_PRIORITY)).toBe(before + 1);
    expect(getPriority()).toBeLessThan(LOW_PRIORITY);
  },
);
