import { type Clock, DAY, iso } from '../core/clock.ts';
import type { Random } from '../core/random.ts';
import type { Recorder } from '../events/record.ts';
import {
  type Classification,
  classify,
  classifyLocal,
  type LocalFailure,
} from '../mail/classify/classify.ts';
import type { SmtpReply } from '../mail/reply.ts';
import type { Lane } from '../store/domains/domains.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import { type RetrySchedule, retryWait } from './retry.ts';
import type { AttemptReport, SessionRecord } from './worker/protocol.ts';

/**
 * What becomes of a message after an attempt: judged once, recorded once. Delivered, tried again later,
 * bounced, refused for its content, or given up.
 */
export interface Judgement {
  verdict: Classification;
  reply: SmtpReply;
  /** Where the bounce came from: the destination, or ourselves. */
  source: 'smtp' | 'local';
  /** Ours, where the message did not come as far as a reply. */
  failure?: LocalFailure;
}

/** Judges a worker's report. */
export function judge(report: AttemptReport): Judgement {
  // The deciding session need not be the last: a later host may not even have answered.
  const deciding =
    report.sessions.findLast(({ reply }) => reply?.code === report.reply?.code) ?? report.sessions.at(-1);
  const host = deciding?.host ?? null;
  if (report.conclusion === 'not-composed') {
    const judgement = judgeLocal('not-composed');
    return report.reply === null ? judgement : { ...judgement, reply: report.reply };
  }
  if (report.reply !== null && report.conclusion !== 'unanswered') {
    const verdict = classify({ phase: report.stage, reply: report.reply, mxHost: host });
    return {
      verdict,
      reply: report.reply,
      source: report.conclusion === 'refused-locally' ? 'local' : 'smtp',
    };
  }
  if (report.conclusion === 'unanswered') return judgeLocal('connection-lost');
  return judgeLocal(report.sessions.some(({ stage }) => stage === 'starttls') ? 'tls-failed' : 'unreachable');
}

export function judgeLocal(failure: LocalFailure): Judgement {
  const { classification, reply } = classifyLocal(failure);
  return { verdict: classification, reply, source: 'local', failure };
}

export interface AttemptLog {
  lane: Lane | 'simulator';
  conclusion: string;
  sessions: SessionRecord[];
}

/** What was recorded, for those who wait for it. */
export interface Outcome {
  status: 'delivered' | 'deferred' | 'bounced' | 'failed';
  reply: SmtpReply;
  /** When it is tried again, epoch ms; null when it is not. */
  nextAttemptAt: number | null;
}

export interface Outcomes {
  /**
   * Judges a failure before any connection. A domain without MX and address may be in the middle of a change: mail
   * to it bounces only when an earlier attempt on another day (UTC) found the same. Call inside a unit of work.
   */
  judgeFailure(tables: Tables, seq: number, failure: LocalFailure): Judgement;
  /**
   * Records an attempt and what follows from it. Call inside a unit of work. Null when the message is no
   * longer being sent (cancelled meanwhile): then only the attempt is kept.
   */
  record(tables: Tables, seq: number, judgement: Judgement, attempt: AttemptLog): Outcome | null;
}

export interface OutcomeSettings {
  clock: Clock;
  random: Random;
  recorder: Recorder;
  retry: RetrySchedule;
}

export function createOutcomes(settings: OutcomeSettings): Outcomes {
  const { clock, random, recorder, retry } = settings;

  function defer(tables: Tables, message: MessageRow, attempts: number, judgement: Judgement): Outcome {
    const now = clock.now();
    const nextAttemptAt = now + retryWait(retry, attempts, judgement.verdict, random);
    if (nextAttemptAt >= message.expires_at) {
      const given = judgeLocal('expired');
      const fields = {
        reason: 'expired' as const,
        attempts,
        ...replyFields(judgement),
        lastDiagnostic: judgement.reply.text,
      };
      recorder.message(tables, message, { kind: 'email_failed', fields });
      return { status: 'failed', reply: given.reply, nextAttemptAt: null };
    }
    const fields = { attempt: attempts, nextAttemptAt: iso(nextAttemptAt), ...replyFields(judgement) };
    recorder.message(tables, message, { kind: 'email_delayed', fields });
    tables.queue.defer(message.seq, nextAttemptAt);
    return { status: 'deferred', reply: judgement.reply, nextAttemptAt };
  }

  function bounce(tables: Tables, message: MessageRow, judgement: Judgement): Outcome {
    const { verdict, reply } = judgement;
    if (judgement.failure === 'not-composed') {
      // No destination refused it: the failure is this side's, and permanent.
      const fields = { reason: 'content_invalid', ...replyFields(judgement) } as const;
      recorder.message(tables, message, { kind: 'email_failed', fields });
      return { status: 'failed', reply, nextAttemptAt: null };
    }
    if (verdict.bounceClass === 'routing-loop') {
      recorder.message(tables, message, {
        kind: 'email_failed',
        fields: { reason: 'loop', ...replyFields(judgement) },
      });
      return { status: 'failed', reply, nextAttemptAt: null };
    }
    const { scope, suppress } = verdict;
    const bounceType = verdict.bounceType ?? 'soft';
    const fields = { bounceType, ...replyFields(judgement), source: judgement.source };
    if (scope === 'message') recorder.message(tables, message, { kind: 'email_rejected', fields });
    else recorder.message(tables, message, { kind: 'email_bounced', fields, effect: { scope, suppress } });
    return { status: 'bounced', reply, nextAttemptAt: null };
  }

  /** Whether an attempt on an earlier day ended with the same conclusion. */
  function seenOnAnotherDay(tables: Tables, seq: number, conclusion: string): boolean {
    const today = Math.floor(clock.now() / DAY);
    return tables.messages.attemptsOf(seq).some(({ at, report }) => {
      const attempt: { conclusion?: string } = JSON.parse(report);
      return attempt.conclusion === conclusion && Math.floor(at / DAY) < today;
    });
  }

  return {
    judgeFailure: (tables, seq, failure) =>
      judgeLocal(
        failure === 'no-mail-service' && seenOnAnotherDay(tables, seq, failure)
          ? 'no-mail-service-again'
          : failure,
      ),
    record: (tables, seq, judgement, attempt) => {
      const message = tables.messages.bySeq(seq);
      if (message === null) return null;
      const attempts = tables.messages.countAttempt(seq);
      const { verdict, reply } = judgement;
      tables.messages.insertAttempt({
        message_seq: seq,
        attempt: attempts,
        at: clock.now(),
        lane: attempt.lane,
        report: {
          conclusion: attempt.conclusion,
          action: verdict.action,
          classification: verdict.action === 'deliver' ? undefined : verdict.bounceClass,
          reply,
          sessions: attempt.sessions,
        },
      });
      if (message.status !== 'sending') return null;
      if (verdict.action === 'defer') return defer(tables, message, attempts, judgement);
      if (verdict.action === 'bounce') return bounce(tables, message, judgement);
      const session = attempt.sessions.at(-1);
      const fields = {
        ...replyText(reply),
        ...(session === undefined ? {} : { remoteHost: session.host, tls: session.tls?.protocol ?? null }),
      };
      recorder.message(tables, message, { kind: 'email_delivered', fields });
      return { status: 'delivered', reply, nextAttemptAt: null };
    },
  };
}

function replyFields({ verdict, reply }: Judgement) {
  return { classification: verdict.bounceClass, ...replyText(reply) };
}

function replyText(reply: SmtpReply) {
  return { smtpCode: reply.code, enhancedCode: reply.enhanced, diagnostic: reply.text };
}
