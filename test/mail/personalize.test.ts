import { describe, expect, it } from 'vitest';
import { type CopyDetails, MARKS, personalize } from '../../src/mail/content.ts';

const copy: CopyDetails = {
  recipient: `"a&b"@example.com`,
  kind: 'marketing',
  unsubscribeUrl: 'https://t.example/u/x?a=1&b=$&',
  reportAbuseUrl: 'https://t.example/r/x',
  unsubscribeAddress: null,
  signedId: 'id',
  feedbackAddress: null,
  feedbackId: 'c:a:mk:postrider',
};

describe('personalize', () => {
  it.each([
    ['html', MARKS.unsubscribeUrl, 'https://t.example/u/x?a=1&amp;b=$&amp;'],
    ['html', MARKS.recipient, '&quot;a&amp;b&quot;@example.com'],
    ['html', `<a href="${MARKS.reportAbuseUrl}">&amp;</a>`, '<a href="https://t.example/r/x">&amp;</a>'],
    ['text', MARKS.unsubscribeUrl, 'https://t.example/u/x?a=1&b=$&'],
    ['text', `${MARKS.recipient}${MARKS.recipient}`, '"a&b"@example.com"a&b"@example.com'],
    ['text', 'no marks', 'no marks'],
    ['text', 'a\u0000z\u0000', 'a\u0000z\u0000'],
  ] as const)('%s %j', (kind, source, expected) => {
    expect(personalize(source, copy, kind)).toBe(expected);
  });
});
