import { describe, expect, it } from 'vitest';
import { indexPhrases } from '../../../src/mail/classify/rules.ts';

const index = indexPhrases(['user unknown', 'greylist', 'ip * blocked', 'mailbox * is full', '[tss0', 'no']);

describe('phrases', () => {
  it.each([
    ['user unknown', ['user unknown']],
    ['550 user unknown, greylisted', ['user unknown', 'greylist']],
    ['a superuser unknown', []],
    ['recip blocked', []],
    ['ip blocked', ['ip * blocked']],
    ['ip 192.0.2.1 blocked', ['ip * blocked']],
    ['ip 192.0.2.1 is unblocked', []],
    [`ip ${'x'.repeat(200)} blocked`, []],
    ['mailbox a is fullest', ['mailbox * is full']],
    ['(x)[tss04] no', ['[tss0', 'no']],
    ['', []],
  ])('%s contains %j', (text, phrases) => {
    expect([...index.find(text)]).toEqual(phrases);
  });
});
