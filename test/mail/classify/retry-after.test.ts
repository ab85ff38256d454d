import { describe, expect, it } from 'vitest';
import { retryAfter } from '../../../src/mail/classify/retry-after.ts';

const ROWS: readonly (readonly [text: string, seconds: number | null])[] = [
  ['4.2.0 Greylisted, try again in 300 seconds', 300],
  ['Greylisting in action, please come back in 00:04:59', 299],
  ['too many connections, retry after 10s', 10],
  ['please wait 2 hours', 7200],
  ['try again in 15 minutes', 900],
  ['retry in 999999 hours', 86400],
  ['try again later', null],
  ['try again, 4 messages wait', null],
  ['Bitte versuchen Sie es in 5 Minuten erneut', 300],
  ['Versuchen Sie es in einigen Stunden erneut', null],
  ['Bitte erneut versuchen in 10 Minuten', 600],
  ['Veuillez réessayer dans 5 minutes', 300],
  ['Dans 5 minutes veuillez réessayer', 300],
  ['Inténtelo de nuevo en 10 minutos', 600],
  ['Riprova tra 5 minuti', 300],
  ['Tente novamente em 30 segundos', 30],
  ['Повторите попытку через 5 минут', 300],
  ['Probeer het over 5 minuten opnieuw', 300],
  ['请在5分钟后重试', 300],
  ['5分後に再試行してください', 300],
  ['1時間後に再送してください', 3600],
  ['Greylisted for 5 minutes', 300],
  ['Retry-After: 120', 120],
  ['limit of 100 messages per hour exceeded, try again later', null],
  [
    'Recipient address rejected: Greylisted for 300 seconds (see http://isg.ee.ethz.ch/tools/postgrey/help/example.com.html)',
    300,
  ],
  ['temporarily deferred, please retry in 1 min.', 60],
  ['Try again in 30 min', 1800],
  ['blocked for 60 minutes', 3600],
  ['Message temporarily deferred - 4.16.55.1', null],
  ['try again after 2 days', 86400],
  ['IP 192.0.2.1 wait', null],
  ['wait 0 seconds', null],
  ['4.7.1 Please try again later [9d8f7a22]', null],
  ['4.7.1 please retry, id 10D5A7B1', null],
  ['4.7.1 delayed, queue id 4D5A7B1', null],
  ['try again later id=3h8ab21', null],
  ['try again later (x5m)', null],
  ['try again in 5m30s', 300],
  ['retry after:60s', 60],
  ['Try again 5 mb', null],
  ['retry in 4 msgs', null],
  ['Please try again in 4 h', 14400],
  ['delay 300s', 300],
  ['Please try after 6 minutes again', 360],
];

describe('the wait that a reply names', () => {
  it.each(ROWS)('%s: %j s', (text, seconds) => {
    expect(retryAfter(text)).toBe(seconds === null ? null : seconds * 1000);
  });

  it.each(['a', 'again ', 'in 5 ', '1', 'again in ', 'retry ', '分', '5分', 'for 1 x ', 'in 00:', 'after 9'])(
    'is found in time linear in 2,000 times %j',
    (piece) => {
      for (let n = 0; n < 100; n++) expect(retryAfter(piece.repeat(2000))).toBeTypeOf('object');
    },
  );
});
