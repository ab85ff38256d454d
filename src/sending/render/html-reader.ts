import { LRUCache } from 'lru-cache';
import type { Work } from '../../core/concurrency/slices.ts';
import { findMissingComplianceInSteps, type RequiredVariable } from '../../mail/compliance.ts';
import {
  parseTemplate,
  parseTemplateInSteps,
  type Template,
  type TemplateSyntax,
} from '../../mail/template.ts';

/*
 * Parses HTML templates, finds the compliance variables that they lack, and caches the results: callers send one
 * template thousands of times, and parsing its HTML is the most expensive step of a send.
 */

/** A parsed HTML template. */
export interface ReadHtml {
  template: Template;
  /** Compliance variables that the template lacks. */
  missing: RequiredVariable[];
}

/** Characters of cached HTML; those of texts are a quarter of it. */
const MAX_CACHED_CHARACTERS = 16 * 1024 * 1024;

/** Sources that are compared with the next one before it is looked up. */
const MAX_RECENT = 8;

/**
 * Begins with empty caches, bounded by `maxCharacters` of HTML and a quarter of it of texts. Readers share nothing: each has
 * separate caches. Results are shared and must not be modified.
 */
export function createHtmlReader(
  syntax: TemplateSyntax = 'variables',
  maxCharacters = MAX_CACHED_CHARACTERS,
) {
  const templates = createSourceCache<ReadHtml>(maxCharacters);
  const textTemplates = createSourceCache<Template>(maxCharacters / 4);

  /** Reads in steps, because HTML can be megabytes of tags. */
  function* reading(html: string): Work<ReadHtml> {
    const known = templates.get(html);
    if (known !== undefined) return known;
    const template = yield* parseTemplateInSteps(html, syntax);
    const missing = yield* findMissingComplianceInSteps(html, template);
    const read = { template, missing };
    templates.set(html, read);
    return read;
  }

  /** Parses a text template. */
  function* readingText(text: string): Work<Template> {
    const known = textTemplates.get(text);
    if (known !== undefined) return known;
    const template = yield* parseTemplateInSteps(text, syntax);
    textTemplates.set(text, template);
    return template;
  }

  return {
    syntax,
    reading,
    readingText,
    /** Parses a subject, which is short. */
    readSubject: (subject: string): Template => parseTemplate(subject, syntax),
  };
}

export type HtmlReader = ReturnType<typeof createHtmlReader>;

interface SourceCache<Value extends object> {
  get(source: string): Value | undefined;
  set(source: string, value: Value): void;
}

/**
 * A cache by source text. A map hashes each new string, which takes ten times as long as comparing it with a string of
 * the same length: the sources that were used last are compared first.
 */
function createSourceCache<Value extends object>(maxCharacters: number): SourceCache<Value> {
  const all = new LRUCache<string, Value>({
    maxSize: maxCharacters,
    // The size must be positive, also of an empty text.
    sizeCalculation: (_, source) => source.length + 1,
    dispose: (_, source) => forget(source),
  });
  const recent: { source: string; value: Value }[] = [];

  function forget(source: string): void {
    const index = recent.findIndex((known) => known.source === source);
    if (index >= 0) recent.splice(index, 1);
  }

  function remember(source: string, value: Value): void {
    if (recent.unshift({ source, value }) > MAX_RECENT) recent.pop();
  }

  return {
    get: (source) => {
      const known = recent.find((one) => one.source.length === source.length && one.source === source);
      if (known !== undefined) return known.value;
      const value = all.get(source);
      if (value !== undefined) remember(source, value);
      return value;
    },
    set: (source, value) => {
      all.set(source, value);
      if (all.peek(source) !== undefined) remember(source, value);
    },
  };
}
