import { describe, expect, it } from 'vitest';
import { REPLY_MEANINGS, type ReplyRule, replyRules } from '../../../src/config/reply-rules.ts';
import { createClassifier, operatorRuleFor } from '../../../src/mail/classify/classifier.ts';
import { classify } from '../../../src/mail/classify/classify.ts';
import type { ClassifierInput } from '../../../src/mail/classify/rules.ts';

function input(code: number, text: string, fields: Partial<ClassifierInput> = {}): ClassifierInput {
  return { phase: 'rcpt', reply: { code, enhanced: null, text }, ...fields };
}

const parse = (...rules: object[]): ReplyRule[] => replyRules.parse(rules);

describe('rules of the operator', () => {
  it('precede the built-in rules, in their order', () => {
    const rules = parse(
      { text: 'user unknown', host: '*.example.net', meaning: 'server error' },
      { text: 'user', code: 550, meaning: 'mailbox full' },
    );
    const classified = createClassifier({ rules });
    expect(classified(input(550, 'User unknown', { mxHost: 'mx1.example.net.' })).bounceClass).toBe(
      'server-error',
    );
    expect(classified(input(550, 'User unknown')).bounceClass).toBe('mailbox-full');
    expect(classified(input(551, 'User unknown')).bounceClass).toBe('invalid-recipient');
    expect(classified(input(250, 'User ok')).action).toBe('deliver');
  });

  it('match words with any text between them, whatever their case, codes and addresses', () => {
    const [rule] = parse({ text: '550 5.7.1 Mailbox * under  Maintenance', meaning: 'server error' });
    const rules = rule === undefined ? [] : [rule];
    expect(operatorRuleFor(rules, input(550, 'The mailbox a@example.net is UNDER maintenance'))).toBe(rule);
    expect(operatorRuleFor(rules, input(550, 'under maintenance: mailbox'))).toBeUndefined();
    expect(operatorRuleFor(rules, input(550, 'submailbox under maintenance'))).toBeUndefined();
  });

  it('match any of several texts and regular expressions, hosts and phases', () => {
    const [rule] = parse({
      match: ['part of their network', '/\\(S\\d{4}\\)$/'],
      mx: ['*.outlook.com', 'hotmail.com'],
      phase: ['greeting', 'mail'],
      code: [550, 451],
      meaning: 'IP address blocklisted',
    });
    const rules = rule === undefined ? [] : [rule];
    const found = (text: string, fields: Partial<ClassifierInput>) =>
      operatorRuleFor(
        rules,
        input(550, text, { phase: 'mail', mxHost: 'x.olc.protection.outlook.com', ...fields }),
      ) !== undefined;
    expect(found('blocked (s3140)', {})).toBe(true);
    expect(found('Part of their  network is listed', { mxHost: 'hotmail.com' })).toBe(true);
    expect(found('blocked (S3140)', { phase: 'rcpt' })).toBe(false);
    expect(found('blocked (S3140)', { mxHost: 'mx.example.net' })).toBe(false);
    expect(found('blocked (S3140) today', {})).toBe(false);
  });

  it('carry their automation', () => {
    const automation = { after: 5, within: '1h', then: 'suspend 2h' };
    const rules = parse({ match: 'slow down', meaning: 'rate limit', automation });
    expect(createClassifier({ rules })(input(450, 'Slow down'))).toMatchObject({
      automation: { after: 5, within: 3_600_000, then: { kind: 'suspend', ms: 7_200_000 } },
    });
  });

  it('decide by codes alone', () => {
    const classified = createClassifier({ rules: parse({ enhanced: '5.7.x', meaning: 'rate limit' }) });
    const reply = { code: 550, enhanced: '5.7.999', text: 'no' };
    expect(classified({ phase: 'mail', reply })).toMatchObject({
      bounceClass: 'rate-limited',
      action: 'defer',
    });
    expect(classified(input(550, 'no')).bounceClass).toBe('unclassified');
  });

  it('set the action and the wait', () => {
    const rules = parse(
      { text: 'come back tomorrow', meaning: 'sender rejected', action: 'defer', retryAfter: '6h' },
      { text: 'never again', meaning: 'spam', action: 'bounce' },
      { text: 'gone forever', meaning: 'no such recipient', action: 'defer' },
    );
    const classified = createClassifier({ rules });
    expect(classified(input(554, 'Come back tomorrow'))).toMatchObject({
      action: 'defer',
      suppress: 'never',
      retryAfterMs: 21_600_000,
    });
    expect(classified(input(450, 'Never again'))).toMatchObject({ action: 'bounce', bounceType: 'block' });
    expect(classified(input(550, 'Gone forever'))).toMatchObject({ action: 'defer', suppress: 'never' });
  });

  it('are replaced by a reload', () => {
    const config: { rules: ReplyRule[] } = { rules: [] };
    const classified = createClassifier(config);
    const reply = input(451, 'Mumble');
    expect(classified(reply)).toEqual(classify(reply));
    config.rules = parse({ text: 'mumble', meaning: 'greylisted' });
    expect(classified(reply).greylisted).toBe(true);
  });

  it.each(['a', ' * ', 'aaa bbb ', 'x@', '5.7.1 '])('cost time linear in 2,000 times %j', (piece) => {
    const rules = parse(
      { text: 'aaa * bbb * ccc * ddd', meaning: 'spam' },
      { text: 'aaa * aaa * aaa', meaning: 'spam' },
    );
    const classified = createClassifier({ rules });
    for (let n = 0; n < 20; n++) expect(classified(input(550, piece.repeat(2000))).action).toBe('bounce');
  });

  it.each([
    [{ meaning: 'spam' }, 'needs match, code or enhanced'],
    [{ text: 'ab', meaning: 'spam' }, 'at least 3 characters'],
    [{ text: 'abc * d', meaning: 'spam' }, 'at least 3 characters'],
    [{ text: 'too many*connections', meaning: 'spam' }, 'only between words'],
    [{ text: 'aaa * bbb * ccc * ddd * eee * fff * ggg', meaning: 'spam' }, 'at most 5'],
    [{ text: 'abc', meaning: 'nonsense' }, 'no such recipient'],
    [{ text: 'abc', code: 250, meaning: 'spam' }, '400'],
    [{ text: 'abc', enhanced: '5.7', meaning: 'spam' }, 'such as "4.7.28"'],
    [{ text: 'abc', meaning: 'spam', action: 'bounce', retryAfter: 5 }, 'must not have retryAfter'],
    [{ text: 'abc', meaning: 'spam', typo: 1 }, 'typo'],
  ])('are refused when they are wrong: %j', (rule, message) => {
    const result = replyRules.safeParse([rule]);
    expect(JSON.stringify(result.error?.issues)).toContain(JSON.stringify(message).slice(1, -1));
  });

  it('have a meaning of each kind', () => {
    const rules = parse(...REPLY_MEANINGS.map((meaning, n) => ({ code: 400 + n, meaning })));
    const classified = createClassifier({ rules });
    const classes = REPLY_MEANINGS.map((_, n) => classified(input(400 + n, '')).bounceClass);
    expect(classes).not.toContain('unclassified');
    expect(new Set(classes).size).toBeGreaterThan(14);
  });
});
