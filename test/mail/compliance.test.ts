import { describe, expect, it } from 'vitest';
import {
  COMPLIANCE_KINDS,
  complianceTemplateProblems,
  complianceVariables,
  missingCompliance,
} from '../../src/mail/compliance.ts';
import { MARKS } from '../../src/mail/content.ts';
import { textFromHtml } from '../../src/mail/html/text-part.ts';
import { parseTemplate, renderTemplate, SERVICE_VARIABLES } from '../../src/mail/template.ts';
import { ENGLISH_FOOTER } from '../support/footer.ts';
import { sample } from '../support/samples.ts';

const ADDRESS = '{{company_address_html}}';
const UNSUBSCRIBE = '{{unsubscribe_email_html}}';

/** Footers in displayed and hidden places. */
const HTML_WITH_FOOTERS = [
  '<p hidden>{{company_address_html}}</p>{{unsubscribe_email_html}}',
  '<td style="font-size:0"><div style="font-size:12px">{{company_address_html}}</div>{{unsubscribe_email_html}}</td>',
  '<div style="visibility:hidden">{{company_address_html}}<i style="visibility:visible">{{unsubscribe_email_html}}</i>',
  '<td><div style="display:none">{{company_address_html}}</td><td>{{unsubscribe_email_html}}</td>',
  '<div style="display:none"><p>x</div></p>{{company_address_html}}{{unsubscribe_email_html}}',
  '<b style="display:none"><p>x</b>{{company_address_html}}</p>{{unsubscribe_email_html}}',
  '<select><option>{{company_address_html}}</select>{{unsubscribe_email_html}}',
];

describe('the required variables', () => {
  it.each([
    `${ADDRESS}${UNSUBSCRIBE}`,
    `<p>{{ company_address_html }}</p><p>{{{unsubscribe_email_html}}}</p>`,
    `<table><tr><td>${ADDRESS}<td>${UNSUBSCRIBE}</table>`,
    `<p>a < b &amp; c ${ADDRESS} &lt; ${UNSUBSCRIBE}`,
    `<!-- note -->${ADDRESS}<!-- ${ADDRESS} -->${UNSUBSCRIBE}`,
    `<!--[if !mso]><!-->${ADDRESS}${UNSUBSCRIBE}<!--<![endif]-->`,
    `<![if !mso]>${ADDRESS}${UNSUBSCRIBE}<![endif]>`,
    `<style>a{color:red}</style>${ADDRESS}<script>x</script>${UNSUBSCRIBE}`,
    `<title>x</title><body>${ADDRESS}${UNSUBSCRIBE}`,
    `<noscript>${ADDRESS}</noscript>${UNSUBSCRIBE}`,
    `<template><template></template></template>${ADDRESS}${UNSUBSCRIBE}`,
    `<!-->${ADDRESS}${UNSUBSCRIBE}<!-- -->`,
    `<!-- a --!>${ADDRESS}${UNSUBSCRIBE}`,
    `</script>${ADDRESS}</style>${UNSUBSCRIBE}`,
    `\\${ADDRESS} ${ADDRESS} ${UNSUBSCRIBE}`,
  ])('are used in %s', (html) => {
    expect(missingCompliance(html)).toEqual([]);
  });

  it.each([
    ['an empty html', ''],
    ['a comment', `<!-- ${ADDRESS} -->`],
    ['a comment that never ends', `<!-- > ${ADDRESS}`],
    ['a comment for Outlook', `<!--[if mso]>${ADDRESS}<![endif]-->`],
    ['a bogus comment', `<!x ${ADDRESS}>`],
    ['a processing instruction', `<?x ${ADDRESS}?>`],
    ['a declaration', `<!doctype ${ADDRESS}>`],
    ['escaped braces', `\\${ADDRESS}`],
    ['a quoted attribute', `<p title="${ADDRESS}">x</p>`],
    ['a single-quoted attribute', `<p title='> ${ADDRESS}'>x</p>`],
    ['a bare attribute', `<p title=${ADDRESS}>x</p>`],
    ['a tag', `<p ${ADDRESS}>x</p>`],
    ['a closing tag', `<p>x</p ${ADDRESS}>`],
    ['a script', `<script>"${ADDRESS}"</script>`],
    ['a script in capitals', `<SCRIPT>"${ADDRESS}"</ScRiPt>`],
    ['a script that never ends', `<script></style></b>${ADDRESS}`],
    ['a style sheet', `<style>/* ${ADDRESS} */</style>`],
    ['the title', `<title>${ADDRESS}</title>`],
    ['a template element', `<template><p>${ADDRESS}</p></template>`],
    ['a nested template element', `<template><template></template>${ADDRESS}</template>`],
    ['a text area', `<textarea>${ADDRESS}</textarea>`],
    ['an inner frame', `<iframe>${ADDRESS}</iframe>`],
    ['other names', '{{company_address}} {{company_address_html2}} {{x.company_address_html}}'],
    ['broken braces', '{{company_address_html} }'],
    ['a box without height', `<div style="max-height:0;overflow:hidden;mso-hide:all">${ADDRESS}</div>`],
    ['a collapsed element', `<div style="visibility:collapse">${ADDRESS}</div>`],
    ['a transparent element', `<div style="opacity:0%">${ADDRESS}</div>`],
    ['a font without size', `<div style="font-size:0">${ADDRESS}</div>`],
    ['the color of the page', `<div style="color:#ffffff">${ADDRESS}</div>`],
    ['a place outside of the page', `<div style="position:absolute;left:-9999px">${ADDRESS}</div>`],
  ])('are missing in %s', (_, html) => {
    expect(missingCompliance(html + UNSUBSCRIBE)).toContain('company_address_html');
    expect(missingCompliance(`${UNSUBSCRIBE}<p>${html}`)).toEqual(['company_address_html']);
  });

  it('are missing after a preheader that is not closed, and then in the text part, too', () => {
    const html = sample('f1-unclosed-preheader.html').toString();
    expect(missingCompliance(html)).toEqual(['company_address_html', 'unsubscribe_email_html']);
    expect(textFromHtml(html)).not.toContain('company_address_html');
    const { html: hidden }: { html: string } = JSON.parse(sample('f1-hidden-footer.json').toString());
    expect(missingCompliance(hidden)).toEqual(['company_address_html', 'unsubscribe_email_html']);
  });

  it.each(HTML_WITH_FOOTERS)('are missing exactly where the text part lacks them: %s', (html) => {
    const text = textFromHtml(html);
    const inText = ['company_address_html', 'unsubscribe_email_html'].filter((name) => !text.includes(name));
    expect(missingCompliance(html)).toEqual(inText);
  });

  it('are both returned when both are missing', () => {
    expect(missingCompliance('<p>{{report_abuse_email_html}}</p>')).toEqual([
      'company_address_html',
      'unsubscribe_email_html',
    ]);
  });

  it.each([
    '<div>',
    '<',
    '<!--',
    '<p {{unsubscribe_email_html}}',
    '&',
    '<script>',
    '{{unsubscribe_email_html}}',
  ])('are found in linear time in repeated %s', (piece) => {
    expect(missingCompliance(piece.repeat(1_000_000 / piece.length))).toContain('company_address_html');
  });
});

const account = {
  companyName: 'Ann & "Bob" <Ltd>',
  companyAddress: {
    line1: '1 High St',
    line2: 'Unit 2',
    city: 'Springfield',
    region: 'IL',
    postalCode: '62701',
    country: 'USA',
  },
};

describe("the service's variables", () => {
  const { html, text } = complianceVariables({
    account,
    from: "o'neill@example.com",
    templates: ENGLISH_FOOTER,
  });

  it('are all set, for HTML and for text', () => {
    expect(Object.keys(html).sort()).toEqual([...SERVICE_VARIABLES].sort());
    expect(Object.keys(text).sort()).toEqual([...SERVICE_VARIABLES].sort());
  });

  it("contain the account's values, escaped in HTML", () => {
    expect(html.company_address_html).toContain('Ann &amp; &quot;Bob&quot; &lt;Ltd&gt;');
    expect(html.company_address_html).toContain('1 High St, Unit 2, Springfield, IL 62701, USA');
    expect(html.company_address).toBe(
      'Ann &amp; &quot;Bob&quot; &lt;Ltd&gt;, 1 High St, Unit 2, Springfield, IL 62701, USA',
    );
    expect(html.unsubscribe_email_html).toContain('o&#39;neill@example.com');
    expect(text.company_address).toBe('Ann & "Bob" <Ltd>, 1 High St, Unit 2, Springfield, IL 62701, USA');
    expect(text.company_address_html).toBe(
      'Ann & "Bob" <Ltd>\n1 High St, Unit 2, Springfield, IL 62701, USA',
    );
  });

  it('contain marks where copies differ', () => {
    expect(html.unsubscribe_email_html).toContain(`href="${MARKS.unsubscribeUrl}"`);
    expect(html.unsubscribe_email_html).toContain(MARKS.recipient);
    expect(html.report_abuse_email_html).toContain(`href="${MARKS.reportAbuseUrl}"`);
    expect(text.unsubscribe_email_html).toContain(`Unsubscribe <${MARKS.unsubscribeUrl}>`);
    expect([html.unsubscribe_url, html.report_abuse_url]).toEqual([
      MARKS.unsubscribeUrl,
      MARKS.reportAbuseUrl,
    ]);
    expect([text.unsubscribe_url, text.report_abuse_url]).toEqual([
      MARKS.unsubscribeUrl,
      MARKS.reportAbuseUrl,
    ]);
  });

  it('omit missing lines of an address', () => {
    const short = { line1: '1 High St', city: 'Ulm', postalCode: '89073', country: 'DE' };
    const { text } = complianceVariables({
      account: { companyName: 'A', companyAddress: short },
      from: 'a@example.com',
      templates: ENGLISH_FOOTER,
    });
    expect(text.company_address).toBe('A, 1 High St, Ulm, 89073, DE');
  });

  it.each([
    { companyName: null, companyAddress: account.companyAddress },
    { companyName: 'A', companyAddress: null },
    { companyName: '', companyAddress: account.companyAddress },
  ])('lack the company variables without the data of the account', (account) => {
    const { html } = complianceVariables({ account, from: 'a@example.com', templates: ENGLISH_FOOTER });
    const rendered = renderTemplate(
      parseTemplate('{{company_address_html}}{{company_address}}'),
      'html',
      {},
      html,
    );
    expect(rendered).toEqual([
      { name: 'company_address_html', reason: 'missing' },
      { name: 'company_address', reason: 'missing' },
    ]);
    expect(html.unsubscribe_email_html).toContain(MARKS.unsubscribeUrl);
  });

  it("use the account's templates", () => {
    const templates = {
      ...ENGLISH_FOOTER,
      unsubscribe: '<a href="{{unsubscribe_url}}">Leave {{ company_name }}, {{recipient_email}}</a>{{slip}}',
    };
    const { html } = complianceVariables({ account, from: 'a@example.com', templates });
    expect(html.unsubscribe_email_html).toContain(
      `><a href="${MARKS.unsubscribeUrl}">Leave Ann &amp; &quot;Bob&quot; &lt;Ltd&gt;, ${MARKS.recipient}</a></`,
    );
    expect(html.report_abuse_email_html).toContain('Report abuse');
  });
});

describe('a compliance snippet', () => {
  const { html, text } = complianceVariables({ account, from: 'a@example.com', templates: ENGLISH_FOOTER });
  const lines = [
    'Regards',
    'Ann & "Bob" <Ltd>',
    '1 High St, Unit 2, Springfield, IL 62701, USA',
    `This message was sent to ${MARKS.recipient} by a@example.com. Unsubscribe <${MARKS.unsubscribeUrl}>`,
    `You did not ask for this message? Report abuse <${MARKS.reportAbuseUrl}>`,
  ];
  const snippets = 'Regards {{company_address_html}} {{unsubscribe_email_html}}{{report_abuse_email_html}}';
  const rendered = (source: string, kind: 'html' | 'text') => {
    const result = renderTemplate(parseTemplate(source), kind, {}, kind === 'html' ? html : text);
    if (typeof result !== 'string') throw new Error(JSON.stringify(result));
    return result;
  };

  it.each([
    `<p>${snippets}</p>`,
    `<table><tr><td>${snippets}</table>`,
    `<div><span>${snippets}</span></div>`,
  ])('starts on a new line in HTML: %s', (source) => {
    expect(textFromHtml(rendered(source, 'html')).split('\n')).toEqual(lines);
    expect(missingCompliance(source)).toEqual([]);
  });

  it('starts on a new line in text', () => {
    expect(rendered(snippets, 'text').split(/ *\n/)).toEqual(lines);
  });

  it.each(['', '\n', 'Regards\n\n', 'Regards\r\n  ', '  \t'])(
    'adds no line break in text after %j',
    (before) => {
      expect(rendered(`${before}{{report_abuse_email_html}}`, 'text')).toBe(`${before}${lines[4]}`);
    },
  );

  it('adds no line break in text before the plain variables', () => {
    const source = 'From {{company_address}}: {{unsubscribe_url}}';
    expect(rendered(source, 'text')).toBe(`From ${text.company_address}: ${MARKS.unsubscribeUrl}`);
  });
});

describe('a compliance template', () => {
  it.each(COMPLIANCE_KINDS)('of kind %s is valid by default', (kind) => {
    expect(complianceTemplateProblems(kind, ENGLISH_FOOTER[kind])).toEqual([]);
  });

  it.each([
    ['unsubscribe', '<a href="{{unsubscribe_url}}">x</a>', []],
    ['unsubscribe', '<p>{{unsubscribe_url}}</p>', []],
    ['unsubscribe', '<p>Write to us</p>', ['{{unsubscribe_url}} is missing']],
    ['unsubscribe', '<!-- <a href="{{unsubscribe_url}}">x</a> -->', ['{{unsubscribe_url}} is missing']],
    ['unsubscribe', '<p class="{{unsubscribe_url}}">x</p>', ['{{unsubscribe_url}} is missing']],
    ['report_abuse', '<a href="{{unsubscribe_url}}">x</a>', ['{{report_abuse_url}} is missing']],
    ['unsubscribe', '<a href="{{unsubscribeUrl}}">Leave</a> {{senderEmail}} {{recipientEmail}}', []],
    ['unsubscribe', '<p style="display:none">{{unsubscribeUrl}}</p>', ['{{unsubscribe_url}} is missing']],
    ['report_abuse', '<a href="{{reportAbuseUrl}}">Report</a>', []],
    ['report_abuse', '<p>Write to {{sender_email}}</p>', []],
    ['report_abuse', '<a href="mailto:abuse@example.com">Report</a>', []],
    ['report_abuse', '<a href="https://example.com/">Report</a>', ['{{report_abuse_url}} is missing']],
    ['company_address', '<p>{{companyName}}<br>{{companyAddress}}</p>', []],
    ['company_address', '<p>Example Ltd, 1 High Street, Sampletown, AB1 2CD</p>', []],
    ['company_address', '<p>{{company_name}}</p>', ['{{company_address}} is missing']],
    ['company_address', '<p hidden>1 High Street, Sampletown</p>', ['{{company_address}} is missing']],
    ['company_address', '{{companyPhone}} {{company_address}}', ['{{companyPhone}} is not available']],
    [
      'company_address',
      '{{company_address}} {{first_name}}',
      ['{{first_name}} is not available in compliance templates'],
    ],
  ] as const)('of kind %s: %s', (kind, html, expected) => {
    const problems = complianceTemplateProblems(kind, html);
    expect(problems).toHaveLength(expected.length);
    for (const [index, start] of expected.entries()) expect(problems[index]).toContain(start);
  });
});

describe('the values for templates of other clients', () => {
  const account = { companyName: 'Example Ltd', companyAddress: null };
  const from = 'shop@example.com';

  it('are inserted for names in camel case', () => {
    const { html } = complianceVariables({
      account,
      from,
      templates: {
        ...ENGLISH_FOOTER,
        unsubscribe: '<a href="{{unsubscribeUrl}}">{{senderEmail}} {{recipientEmail}}</a>',
      },
    });
    expect(html.unsubscribe_email_html).toContain(
      `<a href="${MARKS.unsubscribeUrl}">shop@example.com ${MARKS.recipient}</a>`,
    );
  });

  it('take the address of the template if it is a literal one', () => {
    const templates = {
      ...ENGLISH_FOOTER,
      company_address: '<p>Example Ltd<br>1 High Street, Sampletown</p>',
    };
    const { html, text } = complianceVariables({ account, from, templates });
    expect(html.company_address_html).toContain('<p>Example Ltd<br>1 High Street, Sampletown</p>');
    expect(text.company_address).toBe('Example Ltd, 1 High Street, Sampletown');
    expect(text.company_address_html).toContain('1 High Street');
    const named = { ...ENGLISH_FOOTER, company_address: '<p>{{company_name}}, {{company_address}}</p>' };
    expect(complianceVariables({ account, from, templates: named }).html).not.toHaveProperty(
      'company_address_html',
    );
  });
});
