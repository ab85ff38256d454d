import { describe, expect, it } from 'vitest';
import { classify, enhancedCode, RULES } from '../../../src/mail/classify/classify.ts';
import { MEANINGS, type ReplyPhase } from '../../../src/mail/classify/rules.ts';
import type { SmtpPhase, SmtpReply } from '../../../src/mail/reply.ts';
import { sample } from '../../support/samples.ts';

function reply(line: string): SmtpReply {
  const [, code = '0', text = ''] = /^(\d{3}) (.*)$/s.exec(line) ?? [];
  const enhanced = enhancedCode(text);
  return { code: Number(code), enhanced, text: enhanced ? text.replace(enhanced, '').trim() : text };
}

const classifyAt = (phase: ReplyPhase, line: string) => classify({ phase, reply: reply(line) });

interface ReplySample {
  reply: string;
  phase: SmtpPhase;
  classifications: string[];
  about: string;
}

describe('the replies of public reports', () => {
  const samples: ReplySample[] = JSON.parse(sample('smtp-replies.json').toString());

  it.each(samples)('$reply', ({ reply: line, phase, classifications, about }) => {
    const { bounceClass, scope } = classifyAt(phase, line);
    expect(classifications).toContain(bounceClass);
    if (about !== 'any' && bounceClass !== 'unclassified') expect(scope).toBe(about);
  });

  const lines = sample('smtp-521.txt').toString().trim().split('\n');

  it.each(lines)('%s: does not concern the recipient', (line) => {
    const [, command, text = ''] = /^(greeting|final dot): (.*)$/.exec(line) ?? [];
    const { scope, suppress } = classifyAt(command === 'greeting' ? 'greeting' : 'dot', text);
    expect({ scope, suppress }).toEqual({
      scope: expect.stringMatching(/^(?:site|sender|message)$/),
      suppress: 'never',
    });
  });
});

describe('a code without known wording', () => {
  const CODES = [
    '521',
    '556',
    '551',
    '552',
    '550 5.1.0',
    '550 5.1.1',
    '550 5.1.2',
    '551 5.1.6',
    '556 5.1.10',
    '521 5.2.1',
  ];

  it.each(
    (['greeting', 'ehlo', 'mail', 'data', 'dot'] as const).flatMap((phase) =>
      CODES.map((code) => [phase, code]),
    ),
  )('at %s never concerns the recipient: %s', (phase, code) => {
    const { scope, suppress } = classifyAt(phase as ReplyPhase, `${code} mumble`);
    expect({ scope, suppress }).toEqual({ scope: expect.not.stringMatching('recipient'), suppress: 'never' });
  });

  it.each([
    ['521 5.3.2 mumble', 'server-error', 'site', 'never'],
    ['521 5.1.1 mumble', 'invalid-recipient', 'recipient', 'now'],
    ['521 5.7.1 mumble', 'policy-block', 'message', 'never'],
    ['556 mumble', 'invalid-domain', 'recipient', 'second-time'],
  ] as const)('means at RCPT what its enhanced code states: %s', (line, bounceClass, scope, suppress) => {
    expect(classifyAt('rcpt', line)).toMatchObject({ bounceClass, scope, suppress });
  });

  it('is 521 or 554 alike', () => {
    const phases: ReplyPhase[] = ['greeting', 'ehlo', 'mail', 'rcpt', 'data', 'dot'];
    const texts = [
      'mumble',
      '5.2.1 mumble',
      'User unknown',
      'Access denied',
      '5.5.1 Protocol error',
      'IP blocked',
    ];
    const both = (code: number) =>
      phases.flatMap((phase) => texts.map((text) => classifyAt(phase, `${code} ${text}`)));
    expect(both(521)).toEqual(both(554));
  });
});

describe('the class invalid-recipient', () => {
  it('never has the type soft', () => {
    const isContradiction = ({
      bounceClass,
      bounceType,
    }: {
      bounceClass: string;
      bounceType: string | null;
    }) => bounceClass === 'invalid-recipient' && bounceType === 'soft';
    expect(Object.values(MEANINGS).filter(isContradiction)).toEqual([]);
    const phases: ReplyPhase[] = ['greeting', 'ehlo', 'mail', 'rcpt', 'data', 'dot', 'dsn'];
    const final = phases.flatMap((phase) =>
      RULES.map(({ example }) => classify({ phase, reply: { ...reply(example.reply), code: 550 } })),
    );
    expect(final.filter(({ action }) => action === 'bounce').filter(isContradiction)).toEqual([]);
  });
});
