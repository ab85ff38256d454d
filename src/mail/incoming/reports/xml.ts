import type { IncomingLimits } from '../limits.ts';

/**
 * Reads XML that need not be well-formed, as reporters send it: one pass, no entities beyond XML's own five
 * and character references, nothing fetched, tags that were never closed are closed with their parent. What
 * is nested too deep is skipped; reading stops at the limits on the number of tags and on the length of one.
 */
export interface XmlElement {
  /** Lower case, without namespace prefix. */
  name: string;
  text: string;
  children: XmlElement[];
}

const DEEPEST = 20;
const LONGEST_TEXT = 2000;
const MOST_CHILDREN = 1000;

type XmlLimits = Pick<IncomingLimits, 'xmlTags' | 'xmlTagChars'>;

export interface XmlDocument {
  /** The tree under one nameless root. */
  root: XmlElement;
  /** False when reading stopped at a limit or because `take` said so. */
  isComplete: boolean;
}

/**
 * An element for which `take` returns true when it closes is dropped from the tree, so that a report of many
 * records is read without holding it in memory; 'stop' ends the reading there.
 */
export function readXml(
  xml: string,
  limits: XmlLimits,
  take: (element: XmlElement) => boolean | 'stop',
): XmlDocument {
  const root: XmlElement = { name: '', text: '', children: [] };
  const open: XmlElement[] = [root];
  let tooDeep = 0;
  let isComplete = true;
  for (const token of tokensOf(xml, limits)) {
    if (token.kind === 'limit') isComplete = false;
    if (!isComplete) break;
    const current = open.at(-1) ?? root;
    if (token.kind === 'text') {
      if (tooDeep === 0 && current.text.length < LONGEST_TEXT) current.text += decoded(token.text);
    } else if (token.kind === 'open') {
      if (open.length >= DEEPEST) tooDeep += token.isEmpty ? 0 : 1;
      else if (token.isEmpty) attach(current, { name: token.name, text: '', children: [] });
      else open.push({ name: token.name, text: '', children: [] });
    } else if (tooDeep > 0) tooDeep--;
    else if (token.kind === 'close') close(token.name);
  }
  while (open.length > 1) closeLast();
  return { root, isComplete };

  function close(name: string): void {
    if (!open.some((each) => each.name === name)) return;
    while (open.length > 1 && closeLast() !== name);
  }

  function closeLast(): string {
    const closed = open.pop() ?? root;
    const taken = take(closed);
    if (taken === 'stop') isComplete = false;
    if (taken === false) attach(open.at(-1) ?? root, closed);
    return closed.name;
  }
}

function attach(parent: XmlElement, element: XmlElement): void {
  if (parent.children.length < MOST_CHILDREN) parent.children.push(element);
}

type Token =
  | { kind: 'text'; text: string }
  | { kind: 'open'; name: string; isEmpty: boolean }
  | { kind: 'close'; name: string }
  | { kind: 'limit' };

function* tokensOf(xml: string, { xmlTags, xmlTagChars }: XmlLimits): Generator<Token> {
  let at = 0;
  let tags = 0;
  while (at < xml.length) {
    const tag = xml.indexOf('<', at);
    if (tag !== at)
      yield { kind: 'text', text: xml.slice(at, Math.min(tag < 0 ? xml.length : tag, at + LONGEST_TEXT)) };
    if (tag < 0) return;
    const skipped = SKIPPED.find(([start]) => xml.startsWith(start, tag));
    const end = xml.indexOf(skipped ? skipped[1] : '>', tag + 1);
    if (end < 0) return;
    if (++tags > xmlTags || (!skipped && end - tag > xmlTagChars)) {
      yield { kind: 'limit' };
      return;
    }
    if (skipped?.[0] === CDATA)
      yield { kind: 'text', text: xml.slice(tag + CDATA.length, Math.min(end, tag + LONGEST_TEXT)) };
    else if (!skipped) {
      const name = nameAt(xml, xml[tag + 1] === '/' ? tag + 2 : tag + 1);
      if (xml[tag + 1] === '/') yield { kind: 'close', name };
      else if (name !== '') yield { kind: 'open', name, isEmpty: xml[end - 1] === '/' };
    }
    at = end + (skipped ? skipped[1].length : 1);
  }
}

const CDATA = '<![CDATA[';

/** What is no element, and how it ends. */
const SKIPPED: readonly [start: string, end: string][] = [
  ['<!--', '-->'],
  [CDATA, ']]>'],
  ['<?', '?>'],
  ['<!', '>'],
];

function nameAt(xml: string, from: number): string {
  const name = /^[\w:.-]{1,80}/.exec(xml.slice(from, from + 80))?.[0] ?? '';
  return name.slice(name.indexOf(':') + 1).toLowerCase();
}

const ENTITIES: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

function decoded(text: string): string {
  return text.replaceAll(
    /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(\w{1,5}));/gi,
    (whole, hex?: string, decimal?: string, name?: string) => {
      if (name !== undefined) return ENTITIES[name.toLowerCase()] ?? whole;
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : '';
    },
  );
}
