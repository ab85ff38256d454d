/* What is probably wrong with a campaign, from its rendered content: nothing is requested. */

/** The parts of a preview that are checked. */
export interface CheckedContent {
  subject: string;
  html: string;
  text: string;
  bytes: number;
  /** Variables without a value. */
  missing: readonly string[];
  /** Compliance variables that the content lacks. */
  required: readonly string[];
  /** Text in braces that is not a variable. */
  leftovers: readonly string[];
}

/** `names`: what is meant, such as addresses, at most `MAX_NAMED`. */
export interface ContentCheck {
  id:
    | 'subject'
    | 'optOut'
    | 'values'
    | 'links'
    | 'linksEncrypted'
    | 'images'
    | 'alternatives'
    | 'size'
    | 'leftovers';
  kind: 'ok' | 'warn' | 'bad';
  count: number;
  names: string[];
}

const MAX_NAMED = 3;
/** Fields of contacts: each contact has its own. */
const CONTACT_FIELDS = ['email', 'firstName', 'lastName', 'phone', 'customFields'];
/** The addresses that a preview shows instead of those of a recipient. */
const EXAMPLES = [
  'https://example.com/unsubscribe',
  'https://example.com/preferences',
  'https://example.com/report-abuse',
];

/** Checks content in the order in which a person corrects it. `clippedBytes`: above it, the end is hidden. */
export function contentChecks(content: CheckedContent, clippedBytes: number): ContentCheck[] {
  const { subject, html, bytes, missing, required, leftovers } = content;
  const parsed = parsedHtml(html);
  const links = [...parsed.querySelectorAll('a[href]')]
    .map((link) => link.getAttribute('href')?.trim() ?? '')
    .filter((address) => !EXAMPLES.includes(address));
  const images = [...parsed.querySelectorAll('img')];
  const sources = images.map((image) => image.getAttribute('src')?.trim() ?? '');
  const unknown = missing.filter((name) => !CONTACT_FIELDS.includes(name.split('.', 1)[0] ?? ''));
  return [
    check('subject', subject.trim() === '' ? [''] : [], 'bad'),
    check('optOut', required.map(braced), 'bad'),
    check('values', unknown.map(braced), 'bad'),
    ...(leftovers.length === 0 ? [] : [check('leftovers', leftovers, 'warn')]),
    check(
      'links',
      links.filter((address) => !isWholeLink(address)),
      'bad',
      links.length,
    ),
    ...warningOf(
      'linksEncrypted',
      links.filter((address) => /^http:/i.test(address)),
    ),
    check(
      'images',
      sources.filter((address) => !isWholeImage(address)),
      'bad',
      images.length,
    ),
    ...warningOf(
      'alternatives',
      images.filter((image) => !image.hasAttribute('alt')).map((image) => image.getAttribute('src') ?? ''),
    ),
    check('size', bytes > clippedBytes ? [''] : [], 'bad', bytes),
  ];
}

/** The beginning of the text that inboxes show behind the subject. */
export function previewText(html: string, text: string): string {
  const parsed = parsedHtml(html);
  for (const hidden of parsed.querySelectorAll('style, script, title')) hidden.remove();
  // Words of different lines are not one.
  for (const line of parsed.querySelectorAll('p, div, td, th, li, h1, h2, h3, h4, br')) line.after(' ');
  const shown = html === '' ? text : (parsed.body.textContent ?? '');
  // Templates fill the line with characters that are not seen.
  return shown
    .replaceAll(/\u034F|[\u00AD\u200B-\u200F\uFEFF]/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, MAX_PREVIEW_TEXT);
}

const MAX_PREVIEW_TEXT = 140;

function check(
  id: ContentCheck['id'],
  faults: readonly string[],
  kind: 'warn' | 'bad',
  count = faults.length,
): ContentCheck {
  return faults.length === 0
    ? { id, kind: 'ok', count, names: [] }
    : { id, kind, count: faults.length, names: faults.slice(0, MAX_NAMED) };
}

/**
 * The HTML without a window: nothing runs or is loaded. Styles and handlers are removed before, although they have no effect:
 * the browser would report each as a violation of the policy of this page.
 */
function parsedHtml(html: string): Document {
  const [first = '', ...styled] = html.split(/<style\b/i);
  const plain = [
    first,
    ...styled.map((part) =>
      part
        .split(/<\/style/i)
        .slice(1)
        .join(''),
    ),
  ]
    .join('<i')
    .replaceAll(/\s(?:style|on[a-z]+)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)/gi, '');
  return new DOMParser().parseFromString(plain, 'text/html');
}

/** Only where there is something to warn of. */
function warningOf(id: ContentCheck['id'], faults: readonly string[]): ContentCheck[] {
  return faults.length === 0 ? [] : [check(id, faults, 'warn')];
}

function braced(name: string): string {
  return `{{${name}}}`;
}

/** Whether a link leads somewhere. Variables are inserted for each contact. */
function isWholeLink(address: string): boolean {
  if (address.includes('{{') || /^(?:mailto|tel|sms):./i.test(address)) return true;
  if (address.startsWith('#')) return address.length > 1;
  return /^https?:\/\/[^/]/i.test(address) && URL.canParse(address);
}

function isWholeImage(address: string): boolean {
  return address.includes('{{') || /^(?:https?:\/\/.|data:image\/|cid:.)/i.test(address);
}
