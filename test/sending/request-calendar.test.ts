import { describe, expect, it } from 'vitest';
import { parseCalendar } from '../../src/sending/request.ts';
import { cpuMsOf } from '../support/process-cost.ts';

const EVENT = 'BEGIN:VCALENDAR\nVERSION:2.0\nMETHOD:REQUEST\nSUMMARY:Grüße\nEND:VCALENDAR';

function parse(method: string, content: string) {
  const faults: string[] = [];
  const parts = parseCalendar({ method, content }, (field, message) => faults.push(`${field} ${message}`));
  return { parts, faults };
}

describe('a calendar object', () => {
  it('becomes an alternative and a file, with CRLF line ends', () => {
    const { parts, faults } = parse('request', `\ufeff\n${EVENT}\r\n\r\n`);
    const content = `${EVENT.replaceAll('\n', '\r\n')}\r\n`;
    const base64 = Buffer.from(content).toString('base64');
    expect(faults).toEqual([]);
    expect(parts).toEqual({
      alternative: {
        position: 'after-html',
        contentType: 'text/calendar; charset=utf-8; method=REQUEST',
        content: base64,
      },
      file: { name: 'invite.ics', contentType: 'application/ics', content: base64 },
      bytes: Buffer.byteLength(content),
      warnings: [],
    });
  });

  it.each<[string, string, string, RegExp]>([
    ['an unknown method', 'INVITE', EVENT, /^calendar\.method must be one of PUBLISH, REQUEST, /],
    ['another method than its own', 'CANCEL', EVENT, /^calendar\.method .* which is "REQUEST"$/],
    ['nothing in it', 'REQUEST', '', /^calendar\.content must be an iCalendar object/],
    ['another object', 'REQUEST', 'BEGIN:VCARD\nEND:VCARD', /^calendar\.content/],
    ['no end', 'REQUEST', 'BEGIN:VCALENDAR\nMETHOD:REQUEST\n', /^calendar\.content/],
    ['U+0000', 'REQUEST', EVENT.replace('Grüße', '\u0000'), /^calendar\.content must not contain/],
  ])('is refused with %s', (_, method, content, expected) => {
    const { faults } = parse(method, content);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(expected);
  });

  it('is read in linear time', () => {
    // U+2028 and U+2029 are line ends of JavaScript, and none of iCalendar.
    const properties = ['METHOD;\u2028', 'METHOD;\u2029', 'METHOD;', '\nMETHOD;'].map((one) =>
      one.repeat(10_000),
    );
    const cost = cpuMsOf(() => {
      for (const property of properties) {
        const { parts, faults } = parse('PUBLISH', EVENT.replace('METHOD:REQUEST', property));
        expect(faults).toEqual([]);
        expect(parts?.warnings).toHaveLength(1);
      }
    });
    // Quadratic time is seconds.
    expect(cost).toBeLessThan(500);
  });

  it('without a METHOD property is accepted with a warning', () => {
    const { parts, faults } = parse('PUBLISH', EVENT.replace('METHOD:REQUEST\n', ''));
    expect(faults).toEqual([]);
    expect(parts?.warnings).toEqual([expect.stringContaining('no METHOD property')]);
  });
});
