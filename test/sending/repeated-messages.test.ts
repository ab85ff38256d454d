import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withoutPause } from '../../src/core/concurrency/slices.ts';
import { isRefusal, type Refusal } from '../../src/core/refusal.ts';
import { composeInSteps, messageBytes } from '../../src/mail/compose.ts';
import type { MessageContent, Tracking } from '../../src/mail/content.ts';
import {
  mergeContent,
  partsOf,
  preparePartsInSteps,
  type SharedTexts,
  type TemplatedContent,
} from '../../src/mail/shared-content.ts';
import { readContent } from '../../src/mail/stored-content.ts';
import type { Accepted } from '../../src/sending/accept.ts';
import type { SendRequest } from '../../src/sending/request.ts';
import type { MessageRow } from '../../src/store/messages/messages.ts';
import { copyWith, IDENTITY, TRACKING } from '../support/campaign-copy.ts';
import { contentOf } from '../support/store.ts';
import { startAcceptance } from './acceptance.ts';

/*
 * A send whose texts are shared with earlier messages results in the same message, byte for byte, as the first send of
 * its template, whatever the template and its values.
 */

const TRACKINGS: (Tracking | undefined)[] = [
  undefined,
  TRACKING,
  { ...TRACKING, clickSigner: null },
  { ...TRACKING, linkPrefix: 'https://other.news.example/c/', pixelUrl: null },
];
const LONG = '<p>Terms and conditions apply to all orders.</p>\n'.repeat(22);
const COMPLIANCE = '{{company_address_html}}{{unsubscribe_email_html}}';

const PIECES = [
  '{{a}}',
  '{{ b }}',
  ' {{c}} ',
  '{{a|friend}}',
  '{{a|other <b>}}',
  '{{d.e}}',
  '{{d.f|none}}',
  '{{c|}}',
  '{{missing|default}}',
  '\\{{a}}',
  '{{a b}}',
  '{{unsubscribe_url}}',
  '{{unsubscribe_url|x}}',
  '{{report_abuse_email_html}}',
  '{{company_address_text}}',
  '{{company_address}}',
  '\n',
  '\r\n',
  '\r',
  ' ',
  '\t',
  'Hello',
  'From ',
  '--=_',
  '\u200d',
  '\u034f',
  '\u00a0',
  'x',
  '7',
];
const HTML_PIECES = [
  ...PIECES,
  '<p>',
  '</p>',
  '<br>',
  '<td>',
  '<a href="https://shop.example/a?b=1&amp;c=2">',
  '<a href="https://shop.example/{{a}}">',
  '<a href="{{b}}">',
  '<a href="{{unsubscribe_url}}">',
  '</a>',
  '<i hidden>',
  '</i>',
  '<img alt="{{a}}">',
  '<ul><li>',
  '</ul>',
  '<pre>',
  '</pre>',
  '<style>',
  '</style>',
  '<!-- {{a}} -->',
  '&am',
  '&zwj;',
  '<',
];
const TEXT_PIECES = [...PIECES, '{{{a}}}', '{{unsubscribe_email_text}}', '{{company_address_html}}'];

const value = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom<unknown>('Ann', 'Ann-Marie van Dijk', 'José', 'Анна', 'سلام', '7'),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom<unknown>(
      '',
      ' ',
      0,
      -0,
      1e-7,
      0.1,
      true,
      false,
      'a\nb',
      'a\r',
      '\nb\r\n',
      '<b>&amp;"\'',
      '{{b}}',
      '{{unsubscribe_url}}',
      '\\{{a}}',
      '$& $1 $`',
      'x0x',
      'From me',
      '--=_a',
      '\ud83d',
      '\ude00',
      '😀',
      '\u200d',
      '\u3164',
      'shop.example',
      'https://shop.example/?a=1&b=2',
      'long '.repeat(300),
      'é'.repeat(1200),
    ),
  },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<unknown>({}, [], { f: 'deep' }, 'nul\u0000', null, undefined),
  },
);
const variables = fc.record({ a: value, b: value, c: value, d: fc.oneof(value, fc.record({ e: value })) });
const pieces = (from: readonly string[], maxLength: number) =>
  fc.array(fc.constantFrom(...from), { maxLength }).map((all) => all.join(''));
const send = fc.record({
  html: pieces(HTML_PIECES, 12),
  position: fc.constantFrom('before', 'after'),
  text: fc.option(pieces(TEXT_PIECES, 8)),
  subject: fc.constantFrom(
    'Order',
    'Order {{a}}',
    '{{d.e|none}} {{b}}',
    'Ünter {{c}}',
    '{{company_address}}',
  ),
  templateVariables: variables,
  to: fc.constantFrom('ada@example.net', 'Zoë "Z" <zoe@example.net>', 'jörg@example.net'),
  more: fc.constantFrom<Partial<SendRequest>>(
    {},
    { replyTo: 'Help <help@example.com>' },
    { headers: { 'X-Order': '7', 'List-Unsubscribe': '<https://example.com/u>' } },
    { essential: true },
    { enableClickTracking: true, enableOpenTracking: true },
    { enableClickTracking: false, enableOpenTracking: false },
  ),
});

type Setup = ReturnType<typeof startAcceptance>;

/** The composed message, as a worker composes it: with prepared parts when its texts are shared. */
function composed({ tables }: Setup, message: MessageRow, tracking: Tracking | undefined): string {
  const copy = copyWith(tracking);
  const row = tables.messages.content(message.content_id);
  const shared = tables.sharedContents.get(row?.shared_id ?? 0);
  const content: MessageContent = { ...contentOf(tables, message), ...IDENTITY };
  if (row === null || shared === null) return bytesOf(withoutPause(composeInSteps(content, copy)));
  const texts = readContent(shared) as SharedTexts;
  const own = readContent(row) as TemplatedContent;
  const merged = mergeContent(texts, own, IDENTITY, copy.recipient);
  const parts = partsOf(withoutPause(preparePartsInSteps(texts, tracking)), texts, own.values, copy);
  return bytesOf(withoutPause(composeInSteps({ ...merged, ...IDENTITY }, copy, parts)));
}

function bytesOf(message: Parameters<typeof messageBytes>[0]): string {
  return messageBytes(message).toString('latin1');
}

/** What a sender learns of a result, without ids. */
function outcome(result: Accepted | Refusal): unknown {
  if (isRefusal(result)) return result;
  return result.kind === 'accepted' ? result.warnings : result;
}

const FILLED = { a: 'Earlier', b: 'Earlier', c: 'Earlier', d: { e: 'Earlier' } };

describe('a message with shared texts', () => {
  it('is the same as the first one of its template', async () => {
    const setup = startAcceptance();
    const counts = { shared: 0, complete: 0, refused: 0 };
    let number = 0;
    const property = fc.asyncProperty(send, async ({ html, position, more, ...fields }) => {
      const parts = position === 'before' ? [html, LONG, COMPLIANCE] : [COMPLIANCE, LONG, html];
      const body = {
        ...fields,
        ...more,
        html: `${parts.join('')}<!--${number++}-->`,
        text: fields.text ?? undefined,
      };
      const first = await setup.send(body);
      const [single] = setup.stored();
      for (let n = 0; n < 2; n++)
        await setup.send({ ...body, subject: 'Earlier', templateVariables: FILLED });
      const last = await setup.send(body);
      const [repeated] = setup.stored();
      expect(outcome(last)).toEqual(outcome(first));
      if (isRefusal(first) || single === undefined || repeated === undefined) {
        counts.refused++;
        return;
      }
      const sharedId = setup.tables.messages.content(repeated.content_id)?.shared_id ?? null;
      counts[sharedId === null ? 'complete' : 'shared']++;
      expect({ ...contentOf(setup.tables, repeated), ...IDENTITY }).toEqual({
        ...contentOf(setup.tables, single),
        ...IDENTITY,
      });
      const { subject, recipient, track_clicks, track_opens, essential } = single;
      expect(repeated).toMatchObject({ subject, recipient, track_clicks, track_opens, essential });
      for (const tracking of TRACKINGS)
        expect(composed(setup, repeated, tracking)).toBe(composed(setup, single, tracking));
    });
    await fc.assert(property, {
      numRuns: 150,
      seed: 7,
    });
    expect(counts.shared).toBeGreaterThan(counts.refused);
    expect(counts).toMatchObject({ complete: 0, refused: expect.any(Number) });
  });
});
