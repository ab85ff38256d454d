import type { ReplyRule } from '../../config/reply-rules.ts';
import type { SmtpReply } from '../reply.ts';
import { type Classification, type ClassifierInput, type Classify, classify, meaningOf } from './classify.ts';
import { indexPhrases, type PhraseIndex } from './phrases.ts';
import { matchesRule, normalizeText, type Rule, type RuleInput } from './rules.ts';

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
  let prepared = prepare(rules);
  return (input) => {
    if (rules !== options.rules) {
      rules = options.rules;
      prepared = prepare(rules);
    }
    if (rules.length === 0 || input.reply.code < 400) return null;
    const found = findRule(prepared, input);
    return found === undefined ? null : applyRule(found, input);
  };
}

/** The first rule of the operator that applies to the reply; undefined: none. */
export function operatorRuleFor(rules: readonly ReplyRule[], input: ClassifierInput): ReplyRule | undefined {
  return findRule(prepare(rules), input);
}

interface Prepared {
  rules: readonly { rule: ReplyRule; conditions: Pick<Rule, 'phrases' | 'codes' | 'enhanced' | 'hosts'> }[];
  phrases: PhraseIndex;
}

function prepare(rules: readonly ReplyRule[]): Prepared {
  const prepared = rules.map((rule) => {
    const { text, code, enhanced, host } = rule;
    return {
      rule,
      conditions: {
        ...(text === undefined ? {} : { phrases: [phraseOf(text)] }),
        ...(code === undefined ? {} : { codes: [code] }),
        ...(enhanced === undefined ? {} : { enhanced: [enhanced] }),
        ...(host === undefined ? {} : { hosts: [host] }),
      },
    };
  });
  return {
    rules: prepared,
    phrases: indexPhrases(prepared.flatMap(({ conditions }) => conditions.phrases ?? [])),
  };
}

/** The text as replies are compared: an operator copies it from a reply, with its codes and addresses. */
function phraseOf(text: string): string {
  return text
    .split(' * ')
    .map((part) => normalizeText(part).trim())
    .join(' * ');
}

function findRule({ rules, phrases }: Prepared, input: ClassifierInput): ReplyRule | undefined {
  const { reply, phase, mxHost } = input;
  const fields: RuleInput = {
    phase,
    code: reply.code,
    enhanced: reply.enhanced,
    phrases: phrases.find(normalizeText(reply.text)),
    mxHost: mxHost?.toLowerCase().replace(/\.$/, '') ?? null,
  };
  return rules.find(({ conditions }) => matchesRule(conditions, fields))?.rule;
}

function applyRule(rule: ReplyRule, { reply, phase }: ClassifierInput): Classification {
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
