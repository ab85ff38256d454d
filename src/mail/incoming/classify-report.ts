import type { ClassifyByRules } from '../classify/classifier.ts';
import {
  type BounceClass,
  type Classification,
  classify,
  classifyWithRule,
  meaningOf,
} from '../classify/classify.ts';
import type { ReplyPhase } from '../classify/rules.ts';
import type { StatusGroup } from './delivery-status.ts';
import { isGeneric, preferredCode, quotedReply, replyText } from './quoted-reply.ts';
import { type IncomingReport, NO_BOUNCE } from './report.ts';

/**
 * Classifies what a delivery report states about one recipient: which of its codes count, and in which order its texts
 * are tried. A wrong "hard" suppresses a valid address, so every doubt makes the bounce soft.
 */

/** The parts of a report outside the recipient's group of fields; see `RecipientEvidence`. */
type ReportContext = Pick<RecipientEvidence, 'explanation' | 'notice' | 'reportingMta' | 'isComplete'>;

const NO_CONTEXT: ReportContext = { explanation: '', notice: '', reportingMta: '', isComplete: true };

/** Classifies one group of fields. */
export function classifyGroup(
  group: StatusGroup,
  byRules: ClassifyByRules,
  context: ReportContext = NO_CONTEXT,
): IncomingReport {
  const evidence: RecipientEvidence = {
    ...context,
    recipient: group.recipient,
    action: group.action || (group.status.startsWith('4') ? 'delayed' : 'failed'),
    status: group.status || null,
    diagnostic: group.diagnostic,
    comment: `${group.statusComment} ${group.category}`.trim(),
    remoteMta: group.remoteMta || null,
  };
  return classifyRecipient(evidence, byRules);
}

export interface RecipientEvidence {
  recipient: string;
  action: string;
  /** The status of the report itself, null when it has none. */
  status: string | null;
  diagnostic: string;
  /** Remarks of the report on its status. */
  comment: string;
  /** The text of the notice about this recipient, which names the SMTP command more often than the diagnostic does. */
  explanation: string;
  /** The whole notice if it is about this recipient alone, else ''. */
  notice: string;
  remoteMta: string | null;
  /** The server that wrote the diagnostic when no remote server is named; '' when unknown. */
  reportingMta: string;
  /** Whether the report has the fields that RFC 3464 requires, and quotes a reply. */
  isComplete: boolean;
}

/** The report of one recipient. `byRules`: the rules of the operator, which precede the built-in ones. */
export function classifyRecipient(evidence: RecipientEvidence, byRules: ClassifyByRules): IncomingReport {
  const { recipient, action, status, diagnostic, comment, explanation, notice, remoteMta, reportingMta } =
    evidence;
  const quoted = quotedReply(diagnostic);
  const explained = quotedReply(explanation || notice);
  const code = quoted.code || explained.code;
  const phase = quoted.phase === 'dsn' ? explained.phase : quoted.phase;
  const inner = quoted.enhanced ?? (status === null || isGeneric(status) ? explained.enhanced : null);
  const enhanced = preferredCode(inner, status);
  const common = {
    ...NO_BOUNCE,
    recipient,
    action,
    diagnostic: (diagnostic || explanation || comment || notice).slice(0, 2000),
    remoteMta,
    replyCode: code === 0 ? null : String(code),
  };
  if (action !== 'failed' && action !== 'delayed') return { ...common, status: enhanced ?? '2.0.0' };
  const texts = [replyText(diagnostic), `${diagnostic} ${comment}`, replyText(explanation)];
  // If the status names the cause, text that quotes no reply is as often a footer.
  if (!namesCause(enhanced)) texts.push(explanation);
  // Most of a notice is not about the cause: a specific code is better evidence.
  if (enhanced === null || isGeneric(enhanced)) texts.push(notice);
  const codes: ReportedCodes = {
    phase,
    code: code || (enhanced ? Number(enhanced[0]) * 100 + 50 : action === 'failed' ? 550 : 450),
    // Reporting servers turn any 550 into 5.1.1; after DATA that confirms nothing.
    enhanced: inner === null && isAfterData(phase) && status?.endsWith('.1.1') ? null : enhanced,
    mxHost: remoteMta ?? reportingMta,
  };
  const stated = classifyTexts(texts, notice, codes);
  const isUnconfirmed =
    stated.bounceClass === 'invalid-recipient' &&
    (stated.bounceType !== 'hard' ||
      action !== 'failed' ||
      (!evidence.isComplete && stated.suppress === 'second-time' && FILTER_WORDING.test(common.diagnostic)));
  const classification =
    classifyByRules(texts, { ...codes, enhanced }, byRules) ??
    (isUnconfirmed
      ? meaningOf('unconfirmed no such recipient', { code: codes.code, enhanced, text: '' }, phase)
      : stated);
  const isHard =
    classification.bounceType === 'hard' && action === 'failed' && !DOUBTFUL.has(classification.bounceClass);
  return {
    ...common,
    status: enhanced ?? (action === 'failed' ? '5.0.0' : '4.0.0'),
    bounceType: classification.bounceType === 'hard' && !isHard ? 'soft' : classification.bounceType,
    classification: classification.bounceClass,
    scope: classification.scope,
    suppress: isHard ? classification.suppress : 'never',
  };
}

/**
 * Whether the status is that of an invalid, disabled or full mailbox or of a large message (RFC 3463 §3.2-3.4), which
 * needs no explanation.
 */
function namesCause(status: string | null): boolean {
  return status !== null && /^[45]\.(?:1\.(?:1|2|3|6|10)|2\.[123]|3\.4)$/.test(status);
}

/** Never hard in a report: unknown wording, and a mailbox that may be enabled again. */
const DOUBTFUL: ReadonlySet<BounceClass> = new Set(['unclassified', 'inactive-mailbox']);

/** Wording about unknown users that gateways and filters use in notices about existing mailboxes, too. */
const FILTER_WORDING =
  /user unknown(?! in virtual)|\.\.\. no such user|action not taken: no such user|account that you tried to reach does not exist|user doesn't have a(?! yahoo|n aol| ymail| rocketmail)/i;

/** Longer than any reply; text of a notice beyond it is not about the failure. */
const MAX_TEXT_LENGTH = 2000;

/** Classes of an existing address. */
const ADDRESS_EXISTS: ReadonlySet<BounceClass> = new Set([
  'inactive-mailbox',
  'mailbox-full',
  'message-too-large',
]);

function isAfterData(phase: ReplyPhase): boolean {
  return phase === 'data' || phase === 'dot';
}

interface ReportedCodes {
  phase: ReplyPhase;
  code: number;
  enhanced: string | null;
  mxHost: string | null;
}

/**
 * Classifies by the rules of the operator: the first text to which one applies decides. The codes are those of the
 * report, as the operator reads them there.
 */
function classifyByRules(
  texts: readonly string[],
  { phase, code, enhanced, mxHost }: ReportedCodes,
  byRules: ClassifyByRules,
): Classification | null {
  for (const text of texts) {
    const reply = { code, enhanced, text: text.slice(0, MAX_TEXT_LENGTH) };
    const classification = byRules({ phase, mxHost, reply });
    if (classification !== null) return classification;
  }
  return null;
}

/**
 * Classifies by the first text with known wording, else by the codes alone. A hard classification must not be
 * contradicted by another text or by the notice.
 */
function classifyTexts(
  texts: readonly string[],
  notice: string,
  { phase, code, enhanced, mxHost }: ReportedCodes,
): Classification {
  const classifyText = (text: string) =>
    classifyWithRule({ phase, mxHost, reply: { code, enhanced, text: text.slice(0, MAX_TEXT_LENGTH) } });
  const results = texts
    .filter((text, i) => text.trim() !== '' && texts.indexOf(text) === i)
    .map(classifyText);
  const first = results.find(({ rule }) => rule?.match) ?? results[0];
  const classification =
    first?.classification ?? classify({ phase, mxHost, reply: { code, enhanced, text: '' } });
  if (classification.bounceType !== 'hard') return classification;
  // The explanation may be more specific than the reply, and gateways mix up the replies that they received.
  const contradiction = [...results, classifyText(notice)].find(
    (result) => result.rule?.match && ADDRESS_EXISTS.has(result.classification.bounceClass),
  );
  return contradiction?.classification ?? classification;
}
