import { Tokenizer } from 'htmlparser2';
import type { IncomingLimits } from '../limits.ts';

/**
 * Reads XML that may be malformed, as report generators send it. An element without an end tag ends with its parent;
 * an element nested too deep is skipped. No entities except the predefined ones and character references, and
 * nothing is fetched. Reading stops at the limits on the number of tags and on the length of a tag.
 *
 * Uses the tokenizer of htmlparser2 without its parser, whose stack of open elements has no bound and takes quadratic
 * time.
 */
export interface XmlElement {
  /** Lower case, without namespace prefix. */
  name: string;
  text: string;
  children: XmlElement[];
}

const MAX_DEPTH = 20;
const MAX_TEXT_LENGTH = 2000;
const MAX_CHILDREN = 1000;
const MAX_NAME_LENGTH = 80;

type XmlLimits = Pick<IncomingLimits, 'xmlTags' | 'xmlTagChars'>;

export interface XmlDocument {
  /** The tree below a root without a name. */
  root: XmlElement;
  /** False when a limit or `visit` stopped reading. */
  isComplete: boolean;
}

/**
 * Calls `visit` for each element with content when it ends. `true` removes the element from the tree, so that a report
 * of many records is read without holding it in memory; 'stop' ends reading.
 */
export function readXml(
  xml: string,
  { xmlTags, xmlTagChars }: XmlLimits,
  visit: (element: XmlElement) => boolean | 'stop',
): XmlDocument {
  const root: XmlElement = { name: '', text: '', children: [] };
  const open: XmlElement[] = [root];
  /** Open elements below MAX_DEPTH. */
  let skippedDepth = 0;
  let tags = 0;
  let isComplete = true;
  let name = '';
  let tagStart = 0;

  const stop = () => {
    isComplete = false;
    tokenizer.pause();
  };
  /** Counts a tag, comment or section of `length` characters; false when it exceeds a limit. */
  const isWithinLimits = (length: number): boolean => {
    if (++tags <= xmlTags && length <= xmlTagChars) return true;
    stop();
    return false;
  };
  const countSection = () => void isWithinLimits(0);

  const addText = (text: string) => {
    const element = open.at(-1) ?? root;
    if (skippedDepth === 0 && element.text.length < MAX_TEXT_LENGTH) {
      element.text += text.slice(0, MAX_TEXT_LENGTH);
    }
  };
  const addChild = (element: XmlElement) => {
    const { children } = open.at(-1) ?? root;
    if (children.length < MAX_CHILDREN) children.push(element);
  };
  const endElement = (): string => {
    const ended = open.pop() ?? root;
    const visited = visit(ended);
    if (visited === 'stop') stop();
    if (visited === false) addChild(ended);
    return ended.name;
  };
  const endElementsUpTo = (endTag: string) => {
    if (skippedDepth > 0) skippedDepth--;
    else if (open.some((element) => element.name === endTag)) {
      while (open.length > 1 && endElement() !== endTag);
    }
  };
  const startElement = () => {
    if (open.length < MAX_DEPTH) open.push({ name, text: '', children: [] });
    else skippedDepth++;
  };

  const tokenizer = new Tokenizer(
    { xmlMode: true },
    {
      onopentagname: (start, end) => {
        tagStart = start;
        name = localName(xml, start, end);
      },
      onopentagend: (end) => {
        if (isWithinLimits(end - tagStart)) startElement();
      },
      onselfclosingtag: (end) => {
        if (isWithinLimits(end - tagStart) && skippedDepth === 0) addChild({ name, text: '', children: [] });
      },
      onclosetag: (start, end) => {
        if (isWithinLimits(end - start)) endElementsUpTo(localName(xml, start, end));
      },
      ontext: (start, end) => addText(xml.slice(start, Math.min(end, start + MAX_TEXT_LENGTH))),
      ontextentity: (codePoint) => addText(String.fromCodePoint(codePoint)),
      oncdata: (start, end, endLength) => {
        countSection();
        addText(xml.slice(start, Math.min(end - endLength, start + MAX_TEXT_LENGTH)));
      },
      oncomment: countSection,
      ondeclaration: countSection,
      onprocessinginstruction: countSection,
      onattribname: ignore,
      onattribdata: ignore,
      onattribentity: ignore,
      onattribend: ignore,
      onend: ignore,
    },
  );
  tokenizer.write(xml);
  tokenizer.end();
  while (open.length > 1) endElement();
  return { root, isComplete };
}

function ignore(): void {}

function localName(xml: string, start: number, end: number): string {
  const name = xml.slice(start, Math.min(end, start + MAX_NAME_LENGTH));
  return name.slice(name.indexOf(':') + 1).toLowerCase();
}
