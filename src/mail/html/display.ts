import { ENDED_BY_THE_NEXT, VOID_ELEMENTS } from './walk.ts';

/**
 * Tracks, while HTML is walked, whether its text is displayed: whether no open element is hidden by its
 * attributes. Style sheets are not read. Elements end by the relevant rules of the HTML Standard (§13.2.6.4.7). In doubt
 * a hidden element continues: an end tag that a parser ignores must not make hidden text count as displayed.
 */
export interface DisplayTracker {
  open(name: string, attributes: ReadonlyMap<string, string>): void;
  close(name: string): void;
  isShown(): boolean;
}

/** The attributes that `open` reads. */
export const DISPLAY_ATTRIBUTES: ReadonlySet<string> = new Set(['style', 'hidden']);

/** No two adjacent parts match the same character: the time is linear in the length of the style. */
const HIDING_STYLE =
  /(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*(?:0+(?:\.0*)?|\.0+)\s*(?:!|;|$))/i;
const splitWords = (text: string): ReadonlySet<string> => new Set(text.split(' '));
/** Elements whose content is not displayed, or only after an action of the reader. */
const NOT_SHOWN = splitWords('canvas datalist dialog select');
/** An end tag does not end elements outside of these. */
const SCOPES = splitWords('applet caption html marquee object select table td template th');
/** The end tag of any other element has no effect while one of these is open inside it. */
const BLOCKS = splitWords(
  'address article aside blockquote body button center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p pre search section summary tbody tfoot thead tr ul',
);
/** Elements whose end tag is limited only by their table. */
const CELLS = splitWords('td th');
/** Open elements that are searched for the one that an end tag ends: bounds the time for hostile HTML. */
const MAX_STEPS = 64;

/** Elements of one name. */
interface ElementKind {
  isVoid: boolean;
  endedByNext: boolean;
  isNotShown: boolean;
  isTable: boolean;
  isScope: boolean;
  isBlock: boolean;
  isCell: boolean;
  /** How many of them are open. */
  open: number;
}

function createKind(name: string): ElementKind {
  return {
    isVoid: VOID_ELEMENTS.has(name),
    endedByNext: ENDED_BY_THE_NEXT.has(name),
    isNotShown: NOT_SHOWN.has(name),
    isTable: name === 'table',
    isScope: SCOPES.has(name),
    isBlock: BLOCKS.has(name),
    isCell: CELLS.has(name),
    open: 0,
  };
}

/** Creates a tracker for one walk. */
export function trackDisplay(): DisplayTracker {
  /** By name: one lookup for each tag, however many properties are examined. */
  const kinds = new Map<string, ElementKind>();
  /** The open elements, outermost first. */
  const elements: ElementKind[] = [];
  /** The index of the outermost hidden element, -1 when all are displayed. */
  let hiddenIndex = -1;

  const kindOf = (name: string): ElementKind => {
    const known = kinds.get(name);
    if (known !== undefined) return known;
    const kind = createKind(name);
    kinds.set(name, kind);
    return kind;
  };
  const paragraph = kindOf('p');

  const find = (kind: ElementKind): number => {
    if (kind.open === 0) return -1;
    const lowest = Math.max(0, elements.length - MAX_STEPS);
    for (let at = elements.length - 1; at >= lowest; at--) {
      const open = elements[at];
      if (open === undefined) return -1;
      if (open === kind) return at;
      if (kind.isCell ? open.isTable : open.isScope) return -1;
      if (!kind.isBlock && !kind.isCell && open.isBlock) return -1;
    }
    return -1;
  };
  const end = (kind: ElementKind) => {
    const at = find(kind);
    if (at === -1) return;
    for (let index = elements.length - 1; index >= at; index--) {
      const closed = elements.pop();
      if (closed !== undefined) closed.open--;
    }
    if (hiddenIndex >= at) hiddenIndex = -1;
  };

  return {
    open: (name, attributes) => {
      const kind = kindOf(name);
      if (kind.isVoid) return;
      if (kind.endedByNext) end(kind);
      else if (kind.isBlock) end(paragraph);
      elements.push(kind);
      kind.open++;
      if (hiddenIndex === -1 && (kind.isNotShown || areHiding(attributes))) hiddenIndex = elements.length - 1;
    },
    close: (name) => end(kindOf(name)),
    isShown: () => hiddenIndex === -1,
  };
}

function areHiding(attributes: ReadonlyMap<string, string>): boolean {
  if (attributes.size === 0) return false;
  return attributes.has('hidden') || HIDING_STYLE.test(attributes.get('style') ?? '');
}
