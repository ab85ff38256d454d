/** A request body that is expensive to process, about as large as its path allows. */
export interface HostileBody {
  path: string;
  body(): string;
  headers?: Record<string, string>;
}

const MIB = 1024 * 1024;
const SINGLE = 4 * MIB - 4096;
const BATCH = 32 * MIB - 4096;
/** Just below the limit of names per body. */
const NAMES = 1900;
const SEND = '/transactional/send';
const BATCH_PATH = '/transactional/send-batch';
const FOOTER = '{{company_address_html}}{{unsubscribe_email_html}}';

/** Repeats `text` up to `size` characters. */
const fill = (text: string, size: number) => text.repeat(Math.floor(size / text.length));
function numbered<Item>(count: number, item: (n: number) => Item): Item[] {
  return Array.from({ length: count }, (_, n) => item(n));
}

/** The bodies by description; `envelope` has the verified sender and a recipient. */
export function hostileBodies(envelope: { from: string; to: string }): Record<string, HostileBody> {
  const mail = (fields: object) => ({ ...envelope, subject: 'x', html: FOOTER, ...fields });
  const single = (fields: () => object, headers = {}): HostileBody => ({
    path: SEND,
    body: () => JSON.stringify(mail(fields())),
    headers,
  });
  const raw = (path: string, body: () => string): HostileBody => ({ path, body });
  const rows = (type: string, body: () => string): HostileBody => {
    return { path: '/web-setup/contacts/import', body, headers: { 'Content-Type': type } };
  };
  const contact = (n: number, fields: readonly (readonly [string, string])[]) =>
    JSON.stringify({ email: `i${n}@example.net`, customFields: Object.fromEntries(fields) });
  /** A valid send with this HTML. */
  const html = (source: () => string) => single(() => ({ html: `${FOOTER}${source()}` }));
  const batch = (fields: () => object): HostileBody => {
    return {
      path: BATCH_PATH,
      body: () => {
        const one = JSON.stringify(mail(fields()));
        const count = Math.min(500, Math.floor(BATCH / (one.length + 1)));
        return `{"messages":[${numbered(count, () => one).join(',')}]}`;
      },
    };
  };

  return {
    'a batch of one message with 590,000 attachments': raw(
      BATCH_PATH,
      () =>
        `{"messages":[${JSON.stringify(mail({})).slice(0, -1)},"attachments":[${fill('{"name":"","content":"?","contentType":""},', BATCH - 2000)}{"name":"","content":"?","contentType":""}]}]}`,
    ),
    'a batch of 500 messages with 1,100 attachments each': batch(() => ({
      attachments: numbered(1100, () => ({ name: '', contentType: '', content: '?' })),
    })),
    'a batch of 500 messages with 50 errors each': batch(() => ({
      to: numbered(50, () => 7),
      attachments: numbered(10, () => ({})),
    })),
    'a batch of too many messages': raw(BATCH_PATH, () => `{"messages":[${fill('{},', BATCH - 100)}{}]}`),
    'a batch of unknown fields': raw(
      BATCH_PATH,
      () => `{"messages":[{${fill('"subjetc":1,', BATCH - 100)}"a":1}]}`,
    ),
    'a batch of 32 unknown fields of a megabyte': raw(
      BATCH_PATH,
      () => `{${numbered(31, (n) => `"${'x'.repeat(MIB)}${n}":1`).join(',')},"messages":[{}]}`,
    ),
    'a batch of 500 messages with 64 KiB of html': batch(() => ({ html: FOOTER + fill('<b>{{a}}', 60_000) })),
    'a batch of 500 valid messages of 60 KiB': batch(() => ({
      html: FOOTER + fill('<b>x</b>', 60_000),
    })),
    'a batch of messages of 4 MiB': batch(() => ({ html: FOOTER + fill('<b>x</b>', 3.9 * MIB) })),
    'a batch that is invalid JSON at its end': raw(
      BATCH_PATH,
      () => `{"messages":[${fill('{"a":[1,2,3]},', 6000)}{]}${' '.repeat(BATCH - 7000)}`,
    ),
    'an array of arrays': raw(SEND, () => `[${fill('[],', SINGLE)}[]]`),
    'deeply nested arrays': raw(SEND, () => '['.repeat(SINGLE)),
    'unknown fields': raw(SEND, () => `{${numbered(280_000, (n) => `"subjet${n}":1`).join(',')}}`),
    'the maximum number of unknown fields': raw(
      SEND,
      () => `{${numbered(NAMES, (n) => `"subjet${n}${'x'.repeat(2000)}":1`).join(',')}}`,
    ),
    'a name of 4 MB': raw(SEND, () => `{"${'x'.repeat(SINGLE)}":1}`),
    'a number of 4 MB': raw(SEND, () => `{"to":${'1'.repeat(SINGLE)}}`),
    escapes: raw(SEND, () => `{"to":"${fill('\\u0041', SINGLE)}"}`),
    'a list of addresses in one string': single(() => ({ to: fill('a@example.net,', SINGLE) })),
    'an address of spaces': single(() => ({ to: `${' '.repeat(SINGLE)}x` })),
    'a sender of 4 MB': single(() => ({ from: fill('a"\\"', SINGLE / 2) })),
    'a subject of 4 MB': single(() => ({ subject: fill('{{', SINGLE) })),
    'header fields of 4 MB': single(() => ({ headers: { 'X-A': ' '.repeat(SINGLE) } })),
    'many header fields': single(() => ({
      headers: Object.fromEntries(numbered(NAMES, (n): [string, string] => [`X ${n}`, 'x'.repeat(2000)])),
    })),
    '9,000 empty attachments': single(() => ({ attachments: numbered(9000, () => ({})) })),
    'an attachment that is not base64': single(() => ({
      attachments: [{ name: 'x', contentType: 'text/plain', content: `${fill('AAAA', SINGLE - 5000)}?===` }],
    })),
    'a media type of 4 MB': single(() => ({
      attachments: [{ name: 'x', contentType: fill('a/a ', SINGLE), content: '' }],
    })),
    'missing variables': html(() => numbered(300_000, (n) => `{{v${n}}}`).join('')),
    'one missing variable, repeated': html(() => fill('{{a}}', SINGLE)),
    'the maximum number of missing variables': html(() => numbered(9000, (n) => `{{v${n}}}`).join('')),
    'a variable with a long path': html(() => `{{${fill('a.', SINGLE)}a}}`),
    'a variable of 4 MB that is escaped': single(() => ({
      html: `${FOOTER}{{a}}`,
      templateVariables: { a: '<'.repeat(SINGLE) },
    })),
    'a variable that is used 40,000 times': single(() => ({
      html: FOOTER + fill('{{a}}', 40_000),
      templateVariables: { a: '&<'.repeat(250) },
    })),
    'a raw variable that is used 40,000 times': single(() => ({
      html: FOOTER + fill('{{{a}}}', 40_000),
      templateVariables: { a: '<p>'.repeat(250) },
    })),
    'a raw variable of 4 MB of tags': single(() => ({
      html: `${FOOTER}{{{a}}}`,
      templateVariables: { a: fill('<p>', SINGLE) },
    })),
    'many variables with an idempotency key': single(
      () => ({
        templateVariables: Object.fromEntries(
          numbered(NAMES, (n): [string, string] => [`k${n}`, 'x'.repeat(2000)]),
        ),
      }),
      { 'Idempotency-Key': 'hostile' },
    ),
    'open braces': html(() => fill('{', SINGLE)),
    'pairs of braces': html(() => fill('{{ ', SINGLE)),
    'escaped braces': single(() => ({ html: FOOTER + fill('\\{{', SINGLE * 0.7) })),
    'braces before a name of 4 MB': html(() => `{{${fill('a', SINGLE)}`),
    'unterminated placeholders': html(() => fill('{{a', SINGLE)),
    'unterminated defaults': html(() => fill('{{a|b', SINGLE)),
    tags: html(() => fill('<b>', SINGLE)),
    'nested tags': html(() => fill('<div>', SINGLE)),
    'less-than signs': html(() => fill('<', SINGLE)),
    ampersands: html(() => fill('&', SINGLE)),
    entities: html(() => fill('&amp;', SINGLE)),
    'incomplete entities': html(() => fill('&notit', SINGLE)),
    comments: html(() => fill('<!---->', SINGLE)),
    'an unterminated comment': html(() => `<!--${fill('-', SINGLE)}`),
    'conditional comments': html(() => fill('<!--[if mso]><a href=x><![endif]-->', SINGLE)),
    attributes: html(() => `<a ${fill('a ', SINGLE)}`),
    'an attribute of 4 MB': html(() => `<a href=${fill('x', SINGLE)}`),
    'an attribute of entities': html(() => `<a href='${fill('&amp;', SINGLE)}`),
    titles: html(() => fill('<title>', SINGLE)),
    'a style of 4 MB': html(() => `<p style='${fill('; ', SINGLE)}'>`),
    'control characters': html(() => '\u0001'.repeat(SINGLE / 6.1)),
    'text of 4 MB': single(() => ({ text: fill('{{', SINGLE) })),
    'html of 4 MB for 50 recipients': single(() => ({
      to: numbered(50, (n) => envelope.to.replace('@', `+${n}@`)),
      html: FOOTER + 'x'.repeat(SINGLE - 5000),
    })),
    'an import of contacts with 60 KiB of fields each': rows('application/x-ndjson', () =>
      numbered(300, (n) =>
        contact(
          n,
          numbered(900, (m) => [`f${m}`, 'x'.repeat(60)] as const),
        ),
      ).join('\n'),
    ),
    'an import of nested arrays': rows('application/x-ndjson', () =>
      numbered(
        40,
        (n) => `{"email":"l${n}@example.net","x":${'['.repeat(120_000)}${']'.repeat(120_000)}}`,
      ).join('\n'),
    ),
    'an import of many columns': rows('text/csv', () => {
      const names = numbered(13_500, (n) => `customFields.${n}`);
      return `email,${names.join(',')}\n${numbered(40, (n) => `c${n}@example.net${',x'.repeat(13_500)}`).join('\n')}`;
    }),
    'an import of quotes': rows('text/csv', () => `email\n${fill('"', 8 * MIB)}`),
    'a template of open braces': raw('/web-setup/templates', () =>
      JSON.stringify({ name: 'x', html: FOOTER + fill('{{', 255_000) }),
    ),
    'custom fields': raw('/web-setup/contacts', () =>
      JSON.stringify({ email: 'a@example.net', customFields: numbered(9000, (n) => ({ [`f${n}`]: n })) }),
    ),
  };
}
