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

/** Fingerprints whose texts are counted. */
const MAX_COUNTED = 1000;
const SAMPLE_CHARACTERS = 32;
/** Texts with the same fingerprint. */
const MAX_ALIKE = 4;

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

  /** Reads in steps, because HTML can be megabytes of tags. `isKept`: it is certain to be read again. */
  function* reading(html: string, isKept = false): Work<ReadHtml> {
    const known = templates.get(html);
    if (known !== undefined) return known;
    const template = yield* parseTemplateInSteps(html, syntax);
    const missing = yield* findMissingComplianceInSteps(html, template);
    const read = { template, missing };
    templates.set(html, read, isKept);
    return read;
  }

  /** Parses a text template. */
  function* readingText(text: string, isKept = false): Work<Template> {
    const known = textTemplates.get(text);
    if (known !== undefined) return known;
    const template = yield* parseTemplateInSteps(text, syntax);
    textTemplates.set(text, template, isKept);
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
  /** `isKept`: the source is certain to be read again. */
  set(source: string, value: Value, isKept: boolean): void;
}

interface Known<Value extends object> {
  source: string;
  value: Value;
}

/**
 * A cache by source text, of texts that are sent repeatedly: each text of mail that programs render themselves is sent once, and
 * keeping it would only fill the heap. Texts are compared with those that have the same fingerprint; a map of them would hash
 * each one, which takes ten times as long.
 */
function createSourceCache<Value extends object>(maxCharacters: number): SourceCache<Value> {
  const known = new LRUCache<string, Known<Value>[]>({
    maxSize: maxCharacters,
    // The size must be positive, also of an empty text.
    sizeCalculation: (alike) => alike.reduce((sum, { source }) => sum + source.length, 1),
  });
  /** By fingerprint: how often a text was not known. */
  const misses = new LRUCache<string, number>({ max: MAX_COUNTED });
  /** A request can read its text twice. */
  let latest: Known<Value> | null = null;

  return {
    get: (source) => {
      if (latest?.source === source) return latest.value;
      return known.get(fingerprintOf(source))?.find((one) => one.source === source)?.value;
    },
    set: (source, value, isKept) => {
      latest = { source, value };
      const fingerprint = fingerprintOf(source);
      const count = (misses.get(fingerprint) ?? 0) + 1;
      misses.set(fingerprint, count);
      // Mail whose texts differ in a few characters has equal fingerprints, and each text is sent once.
      if (!isKept && (count === 1 || !isPowerOfTwo(count))) return;
      const others = known.get(fingerprint)?.filter((one) => one.source !== source) ?? [];
      known.set(fingerprint, [latest, ...others.slice(0, MAX_ALIKE - 1)]);
    },
  };
}

/** Equal for equal texts, and almost always different for different ones of several kilobytes. */
function fingerprintOf(source: string): string {
  const sample = (at: number) => source.slice(at, at + SAMPLE_CHARACTERS);
  const { length } = source;
  // Joined, not concatenated: that would refer to the slices, and they to the text.
  return [length, sample(0), sample(length >>> 1), source.slice(-SAMPLE_CHARACTERS)].join(' ');
}

function isPowerOfTwo(count: number): boolean {
  return (count & (count - 1)) === 0;
}
