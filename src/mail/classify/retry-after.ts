/**
 * The wait that a reply names: "try again in 300 seconds", "retry after 5m", "come back in 00:04:59", and the same in the
 * languages of large receivers. A number counts only near words that ask to wait, and with a unit after it, which only a
 * field such as "retry-after: 300" may omit: "4 messages wait" and "limit of 100 per hour" name no wait.
 */

import { HOUR, MINUTE, SECOND } from '../../core/clock.ts';
import { WORDINGS } from './rules.ts';

const MAX_RETRY_AFTER_MS = 24 * HOUR;
/** A reply is longer only if it is hostile. */
const MAX_TEXT_LENGTH = 2000;

/** Expressions for words that ask to wait, at the start of a word; in Chinese and Japanese the number precedes them. */
const REQUESTS = Object.values(WORDINGS).flatMap(({ retry = [] }) => retry);

/** Words for units, and how Chinese and Japanese text behind a number begins. "ms", "mb" and "messages" are no units. */
const UNITS: readonly { ms: number; word: RegExp; ideograph: RegExp }[] = [
  {
    ms: SECOND,
    word: /^(?:s|secs?|seconds?|sekunden?|secondes?|segundos?|secondi|secondo|seconden|sekund[ay]?|сек[а-я]*)$/,
    ideograph: /^秒/,
  },
  {
    ms: MINUTE,
    word: /^(?:m|mins?|minutes?|minuten?|minutos?|minuti|minuto|minut[ay]?|мин[а-я]*)$/,
    ideograph: /^分/,
  },
  {
    ms: HOUR,
    word: /^(?:h|hrs?|hours?|std|stunden?|heures?|horas?|or[ae]|uur|uren|godzin[ay]?|час[а-я]*)$/,
    ideograph: /^(?:小时|小時|个小时|個小時|時間)/,
  },
  {
    ms: 24 * HOUR,
    word: /^(?:d|days?|tage?n?|jours?|d[ií]as?|giorn[io]|dag|dagen|dni|дн[а-я]*|день|сут[а-я]*)$/,
    ideograph: /^天/,
  },
];

/** A number with a unit. In a word such as the identifier "9d8f7a22" it is none; "5m30s" are minutes. */
const TIME =
  '(?<![\\p{Script=Latin}\\p{Script=Cyrillic}\\p{N}])(\\d{1,6})\\s?([\\p{L}]{1,12})(?:(?![\\p{L}\\p{N}])|(?=\\d{1,2}s(?![\\p{L}\\p{N}])))';
const REQUEST = new RegExp(
  `(?<![\\p{L}\\p{N}])(?:${REQUESTS.join('|')})(?![\\p{L}\\p{N}])[^.;\\d]{0,40}?${TIME}`,
  'iu',
);
/** "Please try in 5 minutes", "in 5 Minuten", "dans 5 minutes", with a word that asks to wait behind it. */
const BEFORE = new RegExp(
  `(?<![\\p{L}\\p{N}])(?:in|after|within|nach|dans|après|apres|en|dentro de|em|após|dopo|tra|fra|over|na|za|через|for)\\s(\\d{1,6})\\s?([\\p{L}]{1,12})(?:\\s[\\p{L}\\p{Pd}]{1,12}){0,2}\\s?(?:${REQUESTS.join('|')})(?![\\p{L}\\p{N}])`,
  'iu',
);
/** 请在5分钟后重试, 5分後に再試行してください. */
const CJK = /(\d{1,6})\s?(秒|分钟|分鐘|分|小时|小時|个小时|個小時|時間|天)[^\d]{0,4}?(?:后|後|再)/u;
const CLOCK = /\b(?:in|after|for|within)\s(\d\d):(\d\d)(?::(\d\d))?\b/i;
/** "retry-after: 300", without a unit. */
const SECONDS_FIELD =
  /\b(?:retry[-_ ]?after|retry[-_ ]?in|greylist(?:ed|ing)? for|delay)\s?[=:]\s?(\d{1,6})(?!\d)\s?([a-z]{1,12})?/i;

/** Milliseconds, at most a day; null: the text names no wait. Linear in the length of the text. */
export function retryAfter(reply: string): number | null {
  const text = reply.slice(0, MAX_TEXT_LENGTH);
  // Most replies have no number that could be a time.
  if (!/\d/.test(text)) return null;
  const clock = CLOCK.exec(text);
  if (clock) {
    const [, hours, minutes, seconds] = clock.map(Number);
    // "in 05:00": minutes and seconds.
    return seconds === undefined || Number.isNaN(seconds)
      ? bounded(((hours ?? 0) * 60 + (minutes ?? 0)) * SECOND)
      : bounded((((hours ?? 0) * 60 + (minutes ?? 0)) * 60 + seconds) * SECOND);
  }
  const field = SECONDS_FIELD.exec(text);
  if (field) return bounded(Number(field[1]) * (unitOf(field[2] ?? '') ?? SECOND));
  for (const pattern of [REQUEST, BEFORE, CJK]) {
    const match = pattern.exec(text);
    const unit = unitOf(match?.[2] ?? '');
    if (match && unit !== null) return bounded(Number(match[1]) * unit);
  }
  return null;
}

/** Milliseconds of a unit; null: the word is no unit. */
function unitOf(text: string): number | null {
  const word = text.toLowerCase();
  return UNITS.find((unit) => unit.word.test(word) || unit.ideograph.test(word))?.ms ?? null;
}

/** A wait of zero is ignored. */
function bounded(ms: number): number | null {
  return ms > 0 ? Math.min(ms, MAX_RETRY_AFTER_MS) : null;
}
