import { LRUCache } from 'lru-cache';
import type { Work } from '../core/slices.ts';
import { findingMissingCompliance, type RequiredVariable } from '../mail/compliance.ts';
import { parsingTemplate, type Template } from '../mail/template.ts';

/**
 * Parses html templates, finds the compliance variables that they lack, and caches the results: callers send one
 * template thousands of times, and parsing its html is the most expensive step of a send.
 */
export interface ReadHtml {
  template: Template;
  /** Compliance variables that the template lacks. */
  missing: RequiredVariable[];
}

export interface HtmlReader {
  /** In steps, because html can be megabytes of tags. */
  reading(html: string): Work<ReadHtml>;
  /** Parses a text template. */
  readingText(text: string): Work<Template>;
}

/** Characters of cached html; those of texts are a quarter of it. */
const MAX_CACHED_CHARACTERS = 16 * 1024 * 1024;

export function createHtmlReader(): HtmlReader {
  const templates = new LRUCache<string, ReadHtml>({
    maxSize: MAX_CACHED_CHARACTERS,
    sizeCalculation: (_, html) => html.length + 1,
  });
  const textTemplates = new LRUCache<string, Template>({
    maxSize: MAX_CACHED_CHARACTERS / 4,
    // The size must be positive, also of an empty text.
    sizeCalculation: (_, text) => text.length + 1,
  });

  function* reading(html: string): Work<ReadHtml> {
    const known = templates.get(html);
    if (known !== undefined) return known;
    const template = yield* parsingTemplate(html);
    const missing = yield* findingMissingCompliance(html, template);
    const read = { template, missing };
    templates.set(html, read);
    return read;
  }

  function* readingText(text: string): Work<Template> {
    const known = textTemplates.get(text);
    if (known !== undefined) return known;
    const template = yield* parsingTemplate(text);
    textTemplates.set(text, template);
    return template;
  }

  return { reading, readingText };
}
