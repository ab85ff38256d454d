import type { SmtpPhase, SmtpReply } from '../reply.ts';
import { normalizeText } from './rules.ts';

export interface UnclassifiedReply {
  code: number;
  enhanced: string;
  phase: SmtpPhase;
  text: string;
  host: string;
  replies: number;
  /** Epoch ms. */
  firstAt: number;
  lastAt: number;
}

/** Different replies in memory; further ones are not counted until these are stored. */
const MAX_PENDING = 500;
const MAX_TEXT_LENGTH = 300;

/**
 * Replies without known wording, counted in memory until they are stored. `now`: epoch ms. Counts at most 500 different
 * replies, by code, enhanced code, phase and normalized text; the host is that of the last one.
 */
export function createUnclassifiedReplies(now: () => number) {
  const pending = new Map<string, UnclassifiedReply>();

  function count(reply: UnclassifiedReply): void {
    const { code, enhanced, phase, text, replies, firstAt, lastAt, host } = reply;
    const key = `${code} ${enhanced} ${phase} ${text}`;
    const known = pending.get(key);
    if (known === undefined) {
      if (pending.size < MAX_PENDING) pending.set(key, { ...reply });
      return;
    }
    known.replies += replies;
    known.firstAt = Math.min(known.firstAt, firstAt);
    if (lastAt >= known.lastAt) Object.assign(known, { lastAt, host });
  }

  return {
    add: (phase: SmtpPhase, { code, enhanced, text }: SmtpReply, host: string | null): void => {
      const at = now();
      const normalized = withoutDetails(text);
      count({
        code,
        enhanced: enhanced ?? '',
        phase,
        text: normalized,
        host: host ?? '',
        replies: 1,
        firstAt: at,
        lastAt: at,
      });
    },
    /** Removes and returns at most `count` of them. */
    take: (most: number): UnclassifiedReply[] => {
      const taken: UnclassifiedReply[] = [];
      for (const [key, reply] of pending) {
        if (taken.length >= most) break;
        pending.delete(key);
        taken.push(reply);
      }
      return taken;
    },
    /** Counts replies again that could not be stored. */
    giveBack: (replies: readonly UnclassifiedReply[]): void => {
      for (const reply of replies) count(reply);
    },
  };
}

export type UnclassifiedReplies = ReturnType<typeof createUnclassifiedReplies>;

/**
 * A word, or the part of a word, with a digit. The lookbehind makes the time linear: of a run of letters only the first begins
 * a search.
 */
const WORD_WITH_DIGIT = /(?<![\p{L}\p{N}_-])[\p{L}\p{N}_-]*\d[\p{L}\p{N}_.:-]*/gu;

/**
 * The text in the form in which rules are written, without what differs from reply to reply: addresses, numbers,
 * identifiers (words with digits), and what is quoted.
 */
export function withoutDetails(text: string): string {
  return normalizeText(text)
    .replace(/<[^<>@]*@[^<>]*>/g, '<@>')
    .replace(/"[^"]{1,200}"/g, '"…"')
    .split(' ')
    .map((word) => (/^https?:/.test(word) ? (word.split('?')[0] ?? word) : word))
    .map((word) => word.replace(WORD_WITH_DIGIT, '#'))
    .join(' ')
    .slice(0, MAX_TEXT_LENGTH)
    .trim();
}
