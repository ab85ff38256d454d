import type { ReplyRule } from '../../config/reply-rules.ts';
import type { SmtpReply } from '../reply.ts';
import { type Classification, type Classify, classify, meaningOf } from './classify.ts';
import { type ClassifierInput, createRuleFinder } from './rules.ts';

/** Classifies by the rules of the operator alone; null: none applies. */
export type ClassifyByRules = (input: ClassifierInput) => Classification | null;

/** Classifies with the rules of the operator, which precede the built-in ones. */
export function createClassifier(options: { readonly rules: readonly ReplyRule[] }): Classify {
  const byRules = createRuleClassifier(options);
  return (input) => byRules(input) ?? classify(input);
}

/** Classifies with the rules of the operator. `options.rules` is read at each use, as a reload replaces it. */
export function createRuleClassifier(options: { readonly rules: readonly ReplyRule[] }): ClassifyByRules {
  let rules = options.rules;
  let findRule = createFinder(rules);
  return (input) => {
    if (rules !== options.rules) {
      rules = options.rules;
      findRule = createFinder(rules);
    }
    if (rules.length === 0 || input.reply.code < 400) return null;
    const found = findRule(input);
    return found === undefined ? null : applyRule(found, input);
  };
}

/** The first rule of the operator that applies to the reply; undefined: none. */
export function operatorRuleFor(rules: readonly ReplyRule[], input: ClassifierInput): ReplyRule | undefined {
  return createFinder(rules)(input);
}

/** `text` and `host` are the earlier names of `match` and `mx`. */
function createFinder(rules: readonly ReplyRule[]): (input: ClassifierInput) => ReplyRule | undefined {
  const find = createRuleFinder(
    rules.map((rule) => ({ ...rule, match: rule.match ?? rule.text, mx: rule.mx ?? rule.host, rule })),
  );
  return (input) => find(input)?.rule;
}

function applyRule(rule: ReplyRule, input: ClassifierInput): Classification {
  const { automation } = rule;
  const classification = classifyAs(rule, input);
  return automation === undefined ? classification : { ...classification, automation };
}

function classifyAs(rule: ReplyRule, { reply, phase }: ClassifierInput): Classification {
  const classification = meaningOf(rule.meaning, asIf(reply, rule.action), phase);
  if (rule.action === undefined && rule.retryAfter === undefined) return classification;
  const action = rule.action ?? classification.action;
  if (action !== 'defer') return { ...classification, action };
  return {
    ...classification,
    action,
    suppress: 'never',
    retryAfterMs: rule.retryAfter ?? classification.retryAfterMs,
  };
}

/** The reply with a code of the kind that leads to the action. */
function asIf(reply: SmtpReply, action: ReplyRule['action']): SmtpReply {
  if (action === 'defer' && reply.code >= 500) return { ...reply, code: 450 };
  return action === 'bounce' && reply.code < 500 ? { ...reply, code: 550 } : reply;
}
