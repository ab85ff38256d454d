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

const HIDING_STYLE =
  /(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0?\.?0*\s*(?:!|;|$))/i;
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

/** Creates a tracker for one walk. */
export function trackDisplay(): DisplayTracker {
  /** Names of the open elements, outermost first. */
  const names: string[] = [];
  /** The number of open elements by name. */
  const counts = new Map<string, number>();
  /** The index of the outermost hidden element, -1 when all are displayed. */
  let hiddenIndex = -1;

  const find = (name: string): number => {
    if ((counts.get(name) ?? 0) === 0) return -1;
    const lowest = Math.max(0, names.length - MAX_STEPS);
    for (let at = names.length - 1; at >= lowest; at--) {
      const open = names[at] ?? '';
      if (open === name) return at;
      if (CELLS.has(name) ? open === 'table' : SCOPES.has(open)) return -1;
      if (!BLOCKS.has(name) && !CELLS.has(name) && BLOCKS.has(open)) return -1;
    }
    return -1;
  };
  const end = (name: string) => {
    const at = find(name);
    if (at === -1) return;
    for (const closed of names.splice(at)) counts.set(closed, (counts.get(closed) ?? 0) - 1);
    if (hiddenIndex >= at) hiddenIndex = -1;
  };

  return {
    open: (name, attributes) => {
      if (VOID_ELEMENTS.has(name)) return;
      if (ENDED_BY_THE_NEXT.has(name)) end(name);
      else if (BLOCKS.has(name)) end('p');
      names.push(name);
      counts.set(name, (counts.get(name) ?? 0) + 1);
      if (hiddenIndex !== -1) return;
      const isHidden =
        NOT_SHOWN.has(name) || attributes.has('hidden') || HIDING_STYLE.test(attributes.get('style') ?? '');
      if (isHidden) hiddenIndex = names.length - 1;
    },
    close: end,
    isShown: () => hiddenIndex === -1,
  };
}
