import { describe, expect, it } from 'vitest';
import { HOUR } from '../../../src/core/clock.ts';
import { createReportLimits, REPORTS_ON_DOMAIN, REPORTS_TOTAL } from '../../../src/smtp/mx/receive.ts';
import { heldClock } from '../../support/store.ts';

function start() {
  // Midnight: the windows are hours and days of UTC.
  const clock = heldClock(Date.UTC(2026, 0, 15));
  const limits = createReportLimits(clock);
  /** Sends as many reports as are allowed, at most `most`; returns their number. */
  const send = (sender: string, domain: string, most = 1e6) => {
    let sent = 0;
    for (; sent < most && limits.allows(sender, domain); sent++) limits.count(sender, domain);
    return sent;
  };
  return { clock, send };
}

describe('the reports of one sender', () => {
  it('on one domain are limited by the hour and by the day', () => {
    const { clock, send } = start();
    const sent = Array.from({ length: 25 }, () => {
      const count = send('network one', 'example.com');
      clock.advance(HOUR);
      return count;
    });
    expect(sent.slice(0, 6)).toEqual([60, 60, 60, 60, 60, 0]);
    expect(sent.slice(0, 24).reduce((sum, count) => sum + count)).toBe(REPORTS_ON_DOMAIN.day);
    expect(sent[24]).toBe(REPORTS_ON_DOMAIN.hour);
  });

  it('on all domains together are limited', () => {
    const { send } = start();
    const sent = Array.from({ length: 100 }, (_, n) => send('network one', `d${n}.example`));
    expect(sent.reduce((sum, count) => sum + count)).toBe(REPORTS_TOTAL.hour);
  });

  it('do not affect the limits of other senders and domains', () => {
    const { send } = start();
    send('network one', 'example.com');
    expect(send('network two', 'example.com')).toBe(REPORTS_ON_DOMAIN.hour);
    expect(send('network one', 'other.example')).toBe(REPORTS_ON_DOMAIN.hour);
  });
});
