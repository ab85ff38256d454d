import { expect, it } from 'vitest';
import { readProgramReplies } from '../../src/config/program-replies.ts';
import { replyRule } from '../../src/config/reply-rules.ts';

it('the rules of the program have the form of delivery.replies', () => {
  const rules = readProgramReplies();
  expect(rules.length).toBeGreaterThan(50);
  for (const rule of rules)
    expect(replyRule.safeParse(rule), JSON.stringify(rule)).toMatchObject({ success: true });
});

it('a missing file is named', () => {
  expect(() => readProgramReplies('/nowhere/replies.toml')).toThrow('/nowhere/replies.toml');
});
