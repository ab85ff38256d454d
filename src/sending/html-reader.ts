import { LRUCache } from 'lru-cache';
import { missingCompliance, type RequiredVariable } from '../mail/compliance.ts';
import { parseTemplate, type Template } from '../mail/template.ts';

/**
 * Takes html templates apart and looks for compliance in them, and remembers the ones seen last: a caller sends
 * one template a thousand times, and walking its html is the dearest step on the way in.
 */
export interface ReadHtml {
  template: Template;
  /** Compliance variables that it lacks. */
  missing: RequiredVariable[];
}

/** Characters kept, together. */
const KEPT = 16 * 1024 * 1024;

export function createHtmlReader(): (html: string) => ReadHtml {
  const read = new LRUCache<string, ReadHtml>({ maxSize: KEPT, sizeCalculation: (_, html) => html.length });
  return (html) => {
    const known = read.get(html);
    if (known !== undefined) return known;
    const taken = { template: parseTemplate(html), missing: missingCompliance(html) };
    read.set(html, taken);
    return taken;
  };
}
