import { describe, expect, it } from 'vitest';
import { createScrubber, withoutRecipient } from '../../../src/audience/erasure/scrub.ts';
import { withoutPersonalFields } from '../../../src/events/erased.ts';

const scrubber = createScrubber({
  identifiers: ['email_1', 'phone_1'],
  addresses: ['ada.l+x@example.net', '"a\\"b"@example.net'],
  phone: '+442079460000',
  fullName: 'Ada Lovelace',
});

describe('data of a person', () => {
  it.each([
    ['their address', '<ada.l+x@example.net>: unknown', '<email_1>: unknown'],
    ['in capitals', 'Ada.L+X@EXAMPLE.net', 'email_1'],
    ['at the end of a sentence', 'Write to ada.l+x@example.net.', 'Write to email_1.'],
    ['in a link', 'https://x.org/?e=ada.l%2Bx%40example.net&u=1', 'https://x.org/?e=email_1&u=1'],
    ['in a link inside a link', 'u=%3Fe%3Dada.l%2Bx%40example.net', 'u=%3Fe%3Demail_1'],
    ['their number', 'tel:+442079460000', 'tel:email_1'],
    ['their name', 'Dear ada lovelace,', 'Dear [erased],'],
    [
      'all of them in one text',
      'Ada Lovelace <ada.l+x@example.net> +442079460000',
      '[erased] <email_1> email_1',
    ],
  ])('is removed: %s', (_, text, clean) => {
    expect(scrubber.matches(text)).toBe(true);
    expect(scrubber.text(text)).toBe(clean);
  });

  it.each([
    'canada.l+x@example.net',
    'ada.l+x@example.network',
    'ada.l+x@example.net.org',
    'ada.lxx@example.net',
    'ada.l+x at example.net',
    'Ada',
    'Adam Lovelacer',
    '4420794600001',
  ])('is not found in %s', (text) => {
    expect(scrubber.matches(text)).toBe(false);
    expect(scrubber.text(text)).toBe(text);
  });

  it('is removed from texts anywhere inside JSON, and the rest stays', () => {
    const json = JSON.stringify({
      code: 550,
      text: 'ada.l+x@example.net\n"x"',
      list: [{ to: '"a\\"b"@example.net' }],
      no: null,
    });
    expect(scrubber.matches(json)).toBe(true);
    expect(JSON.parse(scrubber.json(json))).toEqual({
      code: 550,
      text: 'email_1\n"x"',
      list: [{ to: 'email_1' }],
      no: null,
    });
  });

  it('is empty when nothing is known', () => {
    const nobody = createScrubber({ identifiers: ['phone_1'], addresses: [], phone: null, fullName: null });
    expect(nobody.matches('')).toBe(false);
    expect(nobody.text('any text')).toBe('any text');
  });
});

it('removes the fields of an event that describe the person', () => {
  const data = JSON.stringify({ url: 'https://x.org', ip: '192.0.2.1', userAgent: 'Mail/1', isBot: false });
  expect(JSON.parse(withoutPersonalFields(data))).toEqual({ url: 'https://x.org', isBot: false });
});

it('a content of several recipients is kept without the erased one', () => {
  const others = { name: 'Bob', address: 'bob@example.net' };
  const content = {
    from: { name: '', address: 'shop@example.com' },
    to: [{ name: 'Ada', address: 'ADA.l+x@example.net' }, others],
    cc: [{ name: '', address: 'ada.l+x@example.net' }],
    subject: 'For Ada Lovelace and Bob',
    html: '<p>ada.l+x@example.net</p>',
    text: null,
    attachments: [],
    replyTo: null,
    headers: [],
    messageId: 'msg_1@example.com',
    date: 0,
  };
  expect(withoutRecipient(content, scrubber)).toEqual({
    ...content,
    to: [others],
    cc: [],
    subject: 'For [erased] and Bob',
    html: '<p>email_1</p>',
  });
});
