import { expressionOf, type ReplyRule } from '../../config/reply-rules.ts';
import { compilePattern, type LinearPattern } from '../../core/linear-pattern.ts';
import type { SmtpReply } from '../reply.ts';
import { type Classification, type ClassifierInput, type Classify, classify, meaningOf } from './classify.ts';
import {
  indexPhrases,
  matchesRule,
  normalizeText,
  type PhraseIndex,
  type Rule,
  type RuleInput,
} from './rules.ts';

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

interface PreparedRule {
  rule: ReplyRule;
  conditions: Pick<Rule, 'codes' | 'enhanced' | 'hosts' | 'phases'>;
  /** Any of these phrases or patterns; both empty: any text. */
  phrases: readonly string[];
  patterns: readonly LinearPattern[];
}

interface Prepared {
  rules: readonly PreparedRule[];
  phrases: PhraseIndex;
}

function prepare(rules: readonly ReplyRule[]): Prepared {
  const prepared = rules.map((rule): PreparedRule => {
    const { match, text, code, enhanced, mx, host, phase } = rule;
    const hosts = mx ?? host;
    const texts = listOf(match ?? text ?? []);
    return {
      rule,
      conditions: {
        ...(code === undefined ? {} : { codes: listOf(code) }),
        ...(enhanced === undefined ? {} : { enhanced: listOf(enhanced) }),
        ...(hosts === undefined ? {} : { hosts: listOf(hosts) }),
        ...(phase === undefined ? {} : { phases: listOf(phase) }),
      },
      phrases: texts.filter((each) => expressionOf(each) === null).map(phraseOf),
      patterns: texts.flatMap((each) => {
        const compiled = compilePattern(expressionOf(each) ?? '');
        return typeof compiled === 'string' ? [] : [compiled];
      }),
    };
  });
  return { rules: prepared, phrases: indexPhrases(prepared.flatMap(({ phrases }) => phrases)) };
}

function listOf<Value>(given: Value | Value[]): Value[] {
  return Array.isArray(given) ? given : [given];
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
  const text = reply.text.slice(0, MAX_TEXT_LENGTH).replace(/\s+/g, ' ');
  const hasText = ({ phrases: wanted, patterns }: PreparedRule) =>
    (wanted.length === 0 && patterns.length === 0) ||
    wanted.some((phrase) => fields.phrases.has(phrase)) ||
    patterns.some((pattern) => pattern.matches(text));
  return rules.find((each) => matchesRule(each.conditions, fields) && hasText(each))?.rule;
}

/** Replies are truncated to this length; reports may quote more. */
const MAX_TEXT_LENGTH = 2000;

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
