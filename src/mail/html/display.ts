import { VOID_ELEMENTS } from './walk.ts';

/**
 * Knows, while html is walked, whether its text is displayed: not inside an element that its own attributes hide.
 * Style sheets are not read. Follows the rules by which a parser ends elements (HTML Standard §13.2.6.4.7) as far
 * as they matter here; where it does not know better, a hidden element goes on, as an end tag that a parser
 * ignores must not show what stays hidden.
 */
export interface DisplayTracker {
  open(name: string, attributes: ReadonlyMap<string, string>): void;
  close(name: string): void;
  isShown(): boolean;
}

/** The attributes that `open` needs. */
export const DISPLAY_ATTRIBUTES: ReadonlySet<string> = new Set(['style', 'hidden']);

const HIDING_STYLE =
  /(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0?\.?0*\s*(?:!|;|$))/i;
const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));
/** What these hold is not part of the page, or not until somebody asks for it. */
const NOT_SHOWN = words('canvas datalist dialog select');
/** An end tag does not reach the elements around these. */
const SCOPES = words('applet caption html marquee object select table td template th');
/** Between the end tag of any other element and its start tag none of these may be open. */
const BLOCKS = words(
  'address article aside blockquote body button center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p pre search section summary tbody tfoot thead tr ul',
);
/** Ended by their like, as their end tags may be left out. */
const ENDED_BY_THE_NEXT = words('dd dt li option p td th tr');
/** End tags that reach through every scope but that of their table. */
const CELLS = words('td th');
/** How far up an end tag looks for its element: bounds the time of html that is made for it. */
const MAX_STEPS = 64;

export function trackDisplay(): DisplayTracker {
  /** Open elements, outermost first. */
  const names: string[] = [];
  /** How many of each name are open. */
  const counts = new Map<string, number>();
  /** The place of the outermost one that is hidden, -1 when all are displayed. */
  let hiddenAt = -1;

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
    if (hiddenAt >= at) hiddenAt = -1;
  };

  return {
    open: (name, attributes) => {
      if (VOID_ELEMENTS.has(name)) return;
      if (ENDED_BY_THE_NEXT.has(name)) end(name);
      else if (BLOCKS.has(name)) end('p');
      names.push(name);
      counts.set(name, (counts.get(name) ?? 0) + 1);
      if (hiddenAt !== -1) return;
      const isHidden =
        NOT_SHOWN.has(name) || attributes.has('hidden') || HIDING_STYLE.test(attributes.get('style') ?? '');
      if (isHidden) hiddenAt = names.length - 1;
    },
    close: end,
    isShown: () => hiddenAt === -1,
  };
}
