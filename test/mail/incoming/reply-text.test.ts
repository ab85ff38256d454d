import { describe, expect, it } from 'vitest';
import { replyText } from '../../../src/mail/incoming/reply-text.ts';

describe('the text of a reply', () => {
  it.each([
    ['a plain mail', 'Hello\n\n\n\nBye\n', 'Hello\n\nBye'],
    [
      'an answer above',
      'Yes.\n\nOn Mon, 2 Feb 2026 at 10:00, Shop <a@b.example>\nwrote:\n> Are you\n> there?\n',
      'Yes.',
    ],
    ['an answer below', 'On Mon, Shop wrote:\n> Are you there?\n\nYes.\n', 'Yes.'],
    ['answers between', 'Ann wrote:\n> One?\nYes.\n> Two?\nNo.\n', 'Yes.\nNo.'],
    ['German', 'Ja.\n\nAm 02.02.2026 um 10:00 schrieb Shop:\n> Da?\n', 'Ja.'],
    ['French', 'Oui.\n\nLe lun. 2 févr. 2026 à 10:00, Shop <a@b.example> a écrit :\n> Là ?\n', 'Oui.'],
    ['quotes without marks', 'Yes.\n\nOn Mon, Shop wrote:\n\nAre you there?\nBest', 'Yes.'],
    [
      'Outlook',
      'Yes.\n\nFrom: Shop <a@b.example>\nSent: Monday\nTo: Grace\nSubject: Order\n\nAre you there?',
      'Yes.',
    ],
    ['Outlook, marked', 'Yes.\n\n________________________________\nFrom: Shop', 'Yes.'],
    ['a separator', 'Yes.\n-----Original Message-----\nAre you there?', 'Yes.'],
    [
      'lines that only look so',
      'On time it was:\nFrom: here\nnot there\n',
      'On time it was:\nFrom: here\nnot there',
    ],
    ['only a quote', '> a\n> b', ''],
  ])('of %s', (_, text, expected) => {
    expect(replyText(text)).toBe(expected);
  });

  it('takes linear time', () => {
    for (const piece of ['> a\n', 'On a\n', ' \n', 'From: a\n', '_'.repeat(100)])
      expect(typeof replyText(piece.repeat(250_000 / piece.length))).toBe('string');
  });
});
