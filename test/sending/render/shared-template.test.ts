import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withoutPause } from '../../../src/core/concurrency/slices.ts';
import { complianceVariables } from '../../../src/mail/compliance.ts';
import { joinShared } from '../../../src/mail/shared-content.ts';
import { parseTemplate, renderTemplate, type TemplateKind } from '../../../src/mail/template.ts';
import { fillSharedInSteps, shareTemplateInSteps } from '../../../src/sending/render/render-shared.ts';
import { ENGLISH_FOOTER } from '../../support/footer.ts';

const SERVICE = complianceVariables({
  account: {
    companyName: 'Söhne & Co',
    companyAddress: { line1: '1 Main St', city: 'Town', postalCode: '12345', country: 'GB' },
  },
  from: 'news@news.example',
  templates: ENGLISH_FOOTER,
});
const OWN = new Set(['email', 'firstName', 'lastName', 'customFields']);
const isOwn = (name: string) => OWN.has(name.split('.')[0] ?? '');
const OPTIONAL = new Set(['customFields.plan', 'customFields.a.b']);

/** Renders for one recipient in both ways: all together, and the shared text joined with the recipient's values. */
function both(
  source: string,
  kind: TemplateKind,
  variables: { all: Record<string, unknown>; own: Record<string, unknown> },
  limit = 10_000,
): { together: string | null; joined: string | null } {
  const template = parseTemplate(source);
  const service = kind === 'html' ? SERVICE.html : SERVICE.text;
  const merged = { ...variables.all, ...variables.own };
  const together = renderTemplate(template, kind, merged, service, { limit, optional: OPTIONAL });
  const shared = withoutPause(shareTemplateInSteps(template, kind, variables.all, service, { limit, isOwn }));
  if (Array.isArray(shared)) return { together: textOrNull(together), joined: null };
  const filled = withoutPause(fillSharedInSteps(shared, merged, { limit, optional: OPTIONAL }));
  return {
    together: textOrNull(together),
    joined: 'values' in filled ? joinShared(shared, filled.values) : null,
  };
}

function textOrNull(rendered: string | unknown[]): string | null {
  return typeof rendered === 'string' ? rendered : null;
}

const NAMES = [
  'email',
  'firstName',
  'lastName|friend & <co>',
  'firstName|',
  'customFields.plan',
  'customFields.plan|free',
  'customFields.a.b',
  'customFields.unknown',
  'shop.name',
  'offer',
  'offer|none',
  'missing|instead',
  'missing',
  'unsubscribe_url',
  'unsubscribe_email_html',
  'unsubscribe_email_text',
  'company_address_text',
  'company_address',
];
const fragment = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...NAMES).map((name) => `{{${name}}}`) },
  { weight: 1, arbitrary: fc.constantFrom(...NAMES).map((name) => `{{{ ${name} }}}`) },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      'Hello ',
      '\n',
      ' \t',
      '',
      '\r\n\r\n',
      '<a href="',
      '">',
      '\\{{x}}',
      '{{ {{',
      '}}',
      '🐎',
    ),
  },
);
const value = fc.constantFrom(
  '',
  'Ada',
  '<b>"&\'',
  'two\nlines\n',
  ' \t',
  '\n',
  7,
  false,
  null,
  'x'.repeat(40),
  {},
);
const recipient = fc.record(
  {
    email: value,
    firstName: value,
    lastName: value,
    customFields: fc.record({ plan: value, a: fc.record({ b: value }) }, { requiredKeys: [] }),
  },
  { requiredKeys: [] },
);
const all = fc.record({ offer: value, shop: fc.record({ name: value }) }, { requiredKeys: [] });

describe('a template rendered for many recipients', () => {
  it.each<TemplateKind>(['html', 'text', 'subject'])(
    'has the same %s for each recipient as rendered for that recipient alone',
    (kind) => {
      let rendered = 0;
      fc.assert(
        fc.property(
          fc.array(fragment, { maxLength: 12 }),
          all,
          recipient,
          fc.constantFrom(60, 400, 10_000),
          (fragments, shared, own, limit) => {
            const { together, joined } = both(fragments.join(''), kind, { all: shared, own }, limit);
            expect(joined).toBe(together);
            if (together !== null) rendered++;
          },
        ),
        { numRuns: 2000, seed: 20 },
      );
      expect(rendered).toBeGreaterThan(500);
    },
  );

  it('starts a compliance snippet on a new line, whatever the value before it ends with', () => {
    const source = 'Dear {{firstName}} {{unsubscribe_email_text}}';
    const ends = ['Ada', 'Ada\n', ''].map((firstName) => {
      const { together, joined } = both(source, 'text', { all: {}, own: { firstName } });
      expect(joined).toBe(together);
      return joined?.slice(0, joined.indexOf('This'));
    });
    expect(ends).toEqual(['Dear Ada \n', 'Dear Ada\n ', 'Dear  \n']);
  });

  it('stores a value once that is used many times', () => {
    const template = parseTemplate('{{firstName}}, '.repeat(100));
    const shared = withoutPause(shareTemplateInSteps(template, 'html', {}, {}, { limit: 1e6, isOwn }));
    if (Array.isArray(shared)) throw new Error('it cannot be rendered');
    const filled = withoutPause(
      fillSharedInSteps(shared, { firstName: '<Ada>' }, { limit: 1e6, optional: OPTIONAL }),
    );
    expect(filled).toEqual({ values: ['&lt;Ada&gt;'] });
  });
});
