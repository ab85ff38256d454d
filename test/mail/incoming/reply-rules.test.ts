import { expect, it } from 'vitest';
import type { ReplyRule } from '../../../src/config/reply-rules.ts';
import { createRuleClassifier } from '../../../src/mail/classify/classifier.ts';
import { parseIncoming } from '../../../src/mail/incoming/parse.ts';
import { type DsnOptions, dsn } from '../../smtp/mx/mails.ts';

function reportOf(rules: readonly ReplyRule[], options: DsnOptions = {}) {
  const byRules = createRuleClassifier({ rules });
  return parseIncoming(Buffer.from(dsn(options)), { byRules }).reports[0];
}

const UNKNOWN_TO_US = { status: '5.0.0', diagnostic: 'smtp; 554 Transaction closed by the harbor master' };

it('classifies a quoted reply by the rules of the operator', () => {
  expect(reportOf([], UNKNOWN_TO_US)).toMatchObject({ classification: 'unclassified', suppress: 'never' });
  expect(
    reportOf([{ text: 'closed by the harbor master', meaning: 'no such recipient' }], UNKNOWN_TO_US),
  ).toMatchObject({ classification: 'invalid-recipient', bounceType: 'hard', suppress: 'now' });
});

it('prefers them to the built-in rules', () => {
  const rules: ReplyRule[] = [{ text: 'user unknown in virtual', meaning: 'mailbox full' }];
  expect(reportOf([])).toMatchObject({ classification: 'invalid-recipient', bounceType: 'hard' });
  expect(reportOf(rules)).toMatchObject({
    classification: 'mailbox-full',
    bounceType: 'soft',
    suppress: 'never',
  });
});

it('compares the code, the enhanced code and the host of the report', () => {
  const diagnostic = 'smtp; 550 5.1.1 No';
  const meaning = 'spam';
  const spam = { classification: 'spam-block', suppress: 'never' };
  expect(reportOf([{ code: 550, meaning }], { diagnostic })).toMatchObject(spam);
  expect(reportOf([{ enhanced: '5.1.x', meaning }], { diagnostic })).toMatchObject(spam);
  expect(reportOf([{ code: 550, host: 'example.net', meaning }], { diagnostic })).toMatchObject(spam);
  const others: ReplyRule[] = [
    { code: 551, meaning },
    { enhanced: '5.7.x', meaning },
    { code: 550, host: 'example.org', meaning },
  ];
  expect(reportOf(others, { diagnostic })).toMatchObject({ classification: 'invalid-recipient' });
});

it('makes the bounce soft by a rule that defers: a returned message is not retried', () => {
  const rules: ReplyRule[] = [{ text: 'user unknown', meaning: 'no such recipient', action: 'defer' }];
  expect(reportOf(rules)).toMatchObject({
    classification: 'invalid-recipient',
    bounceType: 'soft',
    suppress: 'never',
  });
});

it('never makes a delay hard', () => {
  const rules: ReplyRule[] = [{ text: 'later', meaning: 'no such recipient', action: 'bounce' }];
  const delayed = { action: 'delayed', status: '4.0.0', diagnostic: 'smtp; 451 Try later' };
  expect(reportOf(rules, delayed)).toMatchObject({ bounceType: 'soft', suppress: 'never' });
});
