import { describe, expect, it } from 'vitest';
import { withoutPause } from '../../../src/core/concurrency/slices.ts';
import { isRefusal, type Refusal } from '../../../src/core/refusal.ts';
import { complianceVariables, requiredVariables } from '../../../src/mail/compliance.ts';
import { MAX_PROBLEMS, MAX_SLOTS, parseTemplate } from '../../../src/mail/template.ts';
import { type Rendered, renderPreparedInSteps } from '../../../src/sending/render/render.ts';
import { ENGLISH_FOOTER } from '../../support/footer.ts';
import { refused } from '../../support/refusal.ts';

const SERVICE = complianceVariables({
  account: {
    companyName: 'Shop Ltd',
    companyAddress: { line1: '1 Main St', city: 'Town', postalCode: '12345', country: 'GB' },
  },
  from: 'shop@example.com',
  templates: ENGLISH_FOOTER,
});
const FOOTER = '<p>{{company_address_html}}</p><p>{{unsubscribe_email_html}}</p>';

function render(source: string, variables: Record<string, unknown> = {}): Rendered | Refusal {
  const parts = [{ field: 'html', kind: 'html', template: parseTemplate(source) } as const];
  return withoutPause(
    renderPreparedInSteps(
      { parts: [...parts], service: SERVICE, required: requiredVariables({ essential: false }) },
      variables,
    ),
  );
}

describe('a template whose variables have no value', () => {
  it.each([1, 50, 51, 99, 100, 101, MAX_SLOTS])(
    'is refused with the first fifty of %i variables',
    (count) => {
      const source = Array.from({ length: count }, (_, n) => `{{f${n}}}`).join('');
      const refusal = refused(render(source));
      expect(refusal.code).toBe('TEMPLATE_VARIABLE_MISSING');
      expect(refusal.extras.details).toHaveLength(Math.min(50, count));
      const more = count < MAX_PROBLEMS ? `${count - 50} more` : 'more';
      if (count > 50) expect(refusal.message).toMatch(new RegExp(`; and ${more}$`));
    },
  );

  it('quotes the beginning of a long name', () => {
    const { message, extras } = refused(render(`{{${'a'.repeat(100_000)}}}`));
    expect(message.length).toBeLessThan(200);
    expect(extras.details?.[0]?.name).toHaveLength(65);
  });
});

describe('a raw value', () => {
  const HIDING: [string, string][] = [
    ['opens a comment', '<!--'],
    ['opens a style sheet', '<style>'],
    ['opens a script', '<script>'],
    ['opens a text area', '<textarea>'],
    ['opens a title', '<title>'],
    ['opens plain text', '<plaintext>'],
    ['opens an example', '<xmp>'],
    ['opens a template element', '<template>'],
    ['opens an inner frame', '<iframe>'],
    ['opens a selection', '<select>'],
    ['opens an attribute', '<a title="'],
    ['opens an attribute in single quotes', "<a title='"],
    ['opens an element that is not displayed', '<div style="display:none">'],
    [
      'opens an element that is not displayed, in capitals',
      '<DIV STYLE="color:red; Display : None !important">',
    ],
    ['opens an element that is invisible', '<div style="visibility:hidden">'],
    ['opens a hidden element', '<section hidden>'],
    ['closes what was never open in a hidden element', '<div hidden></span></p></x>'],
    ['closes a formatting element around a hidden one', '<b><div hidden></b>'],
    ['closes an element across a table cell', '<div><table><tr><td><section hidden></div>'],
    ['opens hidden elements in each other', '<div hidden><div></div>'],
  ];

  it.each(HIDING)('cannot hide the footer: it %s', (_, value) => {
    const refusal = refused(render(`<p>Hello {{{a}}}</p>${FOOTER}`, { a: value }));
    expect(refusal.code).toBe('COMPLIANCE_TEMPLATE_MISSING');
    expect(refusal.extras.details?.map(({ name }) => name)).toEqual([
      'company_address_html',
      'unsubscribe_email_html',
    ]);
    expect(refusal.message).toContain('{{{a}}}');
  });

  it.each([
    [`<div style="{{a}}">${FOOTER}</div>`, 'display:none'],
    [`<div style="color:#000;opacity:{{a}}">${FOOTER}</div>`, '0'],
    [`<body bgcolor="{{a}}"><font color="{{b}}">${FOOTER}</font>`, '#fff'],
  ])('cannot hide the footer in a style: %s', (source, value) => {
    const refusal = refused(render(source, { a: value, b: value }));
    expect(refusal.code).toBe('COMPLIANCE_TEMPLATE_MISSING');
    expect(refusal.message).toContain('a variable in a style such as {{a}}');
  });

  it('cannot hide one of the two', () => {
    const source = '{{company_address_html}}{{{a}}}{{unsubscribe_email_html}}';
    const refusal = refused(render(source, { a: '<!--' }));
    expect(refusal.extras.details?.map(({ name }) => name)).toEqual(['unsubscribe_email_html']);
  });

  it.each([
    ['nothing', ''],
    ['a paragraph', '<p>Hello</p>'],
    ['a comment that ends', '<!-- note -->'],
    ['a hidden line that ends', '<div style="display:none">Preview</div>'],
    ['a hidden paragraph that the next one ends', '<p hidden>Preview'],
    ['a hidden cell that the next one ends', '<table><tr><td hidden>x<td>y</table>'],
    ['an open link', '<a href="https://example.com">'],
    ['tags without their other halves', '</div></td><b><i></table>'],
    ['a hidden picture', '<img hidden src="x">'],
  ])('can be %s', (_, value) => {
    expect(render(`<p>Hello {{{a}}}</p>${FOOTER}`, { a: value })).toMatchObject({ html: expect.any(String) });
  });

  it('is checked for both footers where there are two', () => {
    const result = render(`${FOOTER}{{{a}}}${FOOTER}`, { a: '<!--' });
    expect(isRefusal(result)).toBe(false);
  });

  it('hides nothing when it is escaped', () => {
    expect(isRefusal(render(`{{a}}${FOOTER}`, { a: '<!--' }))).toBe(false);
  });
});
