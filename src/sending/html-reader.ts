import { LRUCache } from 'lru-cache';
import type { Work } from '../core/slices.ts';
import { findingCompliance, type RequiredVariable } from '../mail/compliance.ts';
import { parsingTemplate, type Template } from '../mail/template.ts';

/**
 * Parses html templates and looks for compliance in them, and keeps the ones seen last: a caller sends one
 * template a thousand times, and walking its html is the most expensive step of a send.
 */
export interface ReadHtml {
  template: Template;
  /** Compliance variables that it lacks. */
  missing: RequiredVariable[];
}

export interface HtmlReader {
  /** In steps: html may be megabytes of tags. */
  reading(html: string): Work<ReadHtml>;
  /** The same of a text, which needs no compliance. */
  readingText(text: string): Work<Template>;
}

/** Characters of html kept, together; of texts a quarter of it. */
const KEPT = 16 * 1024 * 1024;

export function createHtmlReader(): HtmlReader {
  const kept = new LRUCache<string, ReadHtml>({
    maxSize: KEPT,
    sizeCalculation: (_, html) => html.length + 1,
  });
  const keptTexts = new LRUCache<string, Template>({
    maxSize: KEPT / 4,
    // An empty text is one, too.
    sizeCalculation: (_, text) => text.length + 1,
  });

  function* reading(html: string): Work<ReadHtml> {
    const known = kept.get(html);
    if (known !== undefined) return known;
    const template = yield* parsingTemplate(html);
    const missing = yield* findingCompliance(html, template);
    const read = { template, missing };
    kept.set(html, read);
    return read;
  }

  function* readingText(text: string): Work<Template> {
    const known = keptTexts.get(text);
    if (known !== undefined) return known;
    const template = yield* parsingTemplate(text);
    keptTexts.set(text, template);
    return template;
  }

  return { reading, readingText };
}
