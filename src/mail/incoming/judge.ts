import { type Classification, classify, explain, type Verdict } from '../classify/classify.ts';
import type { SmtpPhase } from '../reply.ts';
import type { StatusGroup } from './delivery-status.ts';
import { isGeneric, preferred, quotedReply, replyText } from './evidence.ts';
import { type IncomingReport, NO_BOUNCE } from './report.ts';

/**
 * Puts what a report says of one recipient before the classifier: which codes count, which words are tried
 * first, and how far second-hand words are believed. A wrong "hard" silences a good address, so every doubt
 * makes it soft.
 */

/** What a report says around a group of fields; see `Finding`. */
type Surroundings = Pick<Finding, 'words' | 'notice' | 'reportingMta'>;

const ALONE: Surroundings = { words: '', notice: '', reportingMta: '' };

/** Judges one group of fields. */
export function judgeGroup(group: StatusGroup, surroundings: Surroundings = ALONE): IncomingReport {
  return judge({
    ...surroundings,
    recipient: group.recipient,
    action: group.action || (group.status.startsWith('4') ? 'delayed' : 'failed'),
    status: group.status || null,
    diagnostic: group.diagnostic,
    comment: `${group.statusComment} ${group.category}`.trim(),
    remoteMta: group.remoteMta || null,
  });
}

export interface Finding {
  recipient: string;
  action: string;
  /** The report's own, null when it gives none. */
  status: string | null;
  diagnostic: string;
  /** The report's further remarks on its status. */
  comment: string;
  /** The notice's words for this recipient, which name the command more often than the diagnostic does. */
  words: string;
  /** All of the notice, when it is about this recipient alone. */
  notice: string;
  remoteMta: string | null;
  /** Whose words they are when it names no remote server; '' when unknown. */
  reportingMta: string;
}

/** What became of one recipient, in the classifier's words. */
export function judge(finding: Finding): IncomingReport {
  const { recipient, action, status, diagnostic, comment, words, notice, remoteMta, reportingMta } = finding;
  const quoted = quotedReply(diagnostic);
  const inWords = quotedReply(words || notice);
  const code = quoted.code || inWords.code;
  const stage = quoted.stage === 'dsn' ? inWords.stage : quoted.stage;
  const inner = quoted.enhanced ?? (status === null || isGeneric(status) ? inWords.enhanced : null);
  const enhanced = preferred(inner, status);
  const common = {
    ...NO_BOUNCE,
    recipient,
    action,
    diagnostic: (diagnostic || words || comment || notice).slice(0, 2000),
    remoteMta,
    replyCode: code === 0 ? null : String(code),
  };
  if (action !== 'failed' && action !== 'delayed') return { ...common, status: enhanced ?? '2.0.0' };
  const texts = [replyText(diagnostic), `${diagnostic} ${comment}`, replyText(words)];
  // Next to a status that names the cause, prose that quotes no reply is as often a footer.
  if (!namesCause(enhanced)) texts.push(words);
  // A whole notice is full of polite words; a code that says something says it better.
  if (enhanced === null || isGeneric(enhanced)) texts.push(notice);
  const verdict = classifyFirst(texts, notice, {
    stage,
    code: code || (enhanced ? Number(enhanced[0]) * 100 + 50 : action === 'failed' ? 550 : 450),
    // Reporters turn any 550 into a 5.1.1 of their own; after DATA that confirms nothing.
    enhanced: inner === null && isAfterData(stage) && status?.endsWith('.1.1') ? null : enhanced,
    mxHost: remoteMta ?? reportingMta,
  });
  const isHard = verdict.bounceType === 'hard' && action === 'failed' && !DOUBTED.has(verdict.classification);
  return {
    ...common,
    status: enhanced ?? (action === 'failed' ? '5.0.0' : '4.0.0'),
    bounceType: verdict.bounceType === 'hard' && !isHard ? 'soft' : verdict.bounceType,
    classification: verdict.classification,
    scope: verdict.scope,
    suppress: isHard ? verdict.suppress : 'never',
  };
}

/** Statuses of a bad, shut or full mailbox and of a large message (RFC 3463 §3.2-3.4): they need no explanation. */
function namesCause(status: string | null): boolean {
  return status !== null && /^[45]\.(?:1\.(?:1|2|3|6|10)|2\.[123]|3\.4)$/.test(status);
}

/** Not held against an address on second-hand evidence: what nobody understands, and what may open again. */
const DOUBTED: ReadonlySet<Classification> = new Set(['unclassified', 'inactive-mailbox']);

/** More than any reply; a notice's words beyond it are not about the fault. */
const LONGEST_TEXT = 2000;

/** Whose mailbox is full or shut, and who is sent too much, is not unknown. */
const KEEPS_ADDRESS: ReadonlySet<Classification> = new Set([
  'inactive-mailbox',
  'mailbox-full',
  'message-too-large',
]);

function isAfterData(stage: SmtpPhase | 'dsn'): boolean {
  return stage === 'data' || stage === 'dot';
}

interface Codes {
  stage: SmtpPhase | 'dsn';
  code: number;
  enhanced: string | null;
  mxHost: string | null;
}

/**
 * Judges by the first of the texts whose words are known; else by the codes alone. A verdict that is hard has
 * to hold against all of them, and against the notice around them.
 */
function classifyFirst(
  texts: readonly string[],
  notice: string,
  { stage, code, enhanced, mxHost }: Codes,
): Verdict {
  const judgeText = (text: string) =>
    explain({ stage, mxHost, reply: { code, enhanced, text: text.slice(0, LONGEST_TEXT) } });
  const judged = texts.filter((text, i) => text.trim() !== '' && texts.indexOf(text) === i).map(judgeText);
  const first = judged.find(({ rule }) => rule?.says) ?? judged[0];
  const verdict = first?.verdict ?? classify({ stage, mxHost, reply: { code, enhanced, text: '' } });
  if (verdict.bounceType !== 'hard') return verdict;
  // Words for people may know better than the reply beside them, and gateways mix up what they were told.
  const softer = [...judged, judgeText(notice)].find(
    ({ verdict, rule }) => rule?.says && KEEPS_ADDRESS.has(verdict.classification),
  );
  return softer?.verdict ?? verdict;
}
