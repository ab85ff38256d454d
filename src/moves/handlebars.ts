import { type Converted, checkText, createLoopNames, createParts, liquidPath } from './template-parts.ts';

/*
 * Converts templates of Handlebars (SendGrid, Mailgun, Amazon SES, Resend) and Mustachio (Postmark). A condition is true for
 * the same values: `x | default: false` is false for what is missing, null, false, 0, '' and an empty list. Sections and
 * loops change what names refer to; the converted template has the whole path.
 */

export type HandlebarsDialect = 'postmark' | 'sendgrid' | 'mailgun' | 'ses' | 'resend';

/** Variables of a service in place of which we have one of ours. */
const SERVICE: Partial<Record<HandlebarsDialect, Readonly<Record<string, string>>>> = {
  postmark: { 'pm:unsubscribe': 'unsubscribe_url', 'pm:unsubscribe_url': 'unsubscribe_url' },
  sendgrid: {
    unsubscribe: 'unsubscribe_url',
    unsubscribe_preferences: 'preferences_url',
    weblink: 'view_url',
  },
  ses: { amazonSESUnsubscribeUrl: 'unsubscribe_url' },
  resend: { RESEND_UNSUBSCRIBE_URL: 'unsubscribe_url' },
};

/** Text of a service outside of braces. */
const MARKS: Partial<Record<HandlebarsDialect, readonly (readonly [text: string, variable: string])[]>> = {
  sendgrid: [
    ['<%asm_group_unsubscribe_raw_url%>', 'unsubscribe_url'],
    ['<%asm_preferences_raw_url%>', 'preferences_url'],
  ],
  mailgun: [['%unsubscribe_url%', 'unsubscribe_url']],
};
/** Marks of a service that have no equivalent. */
const FOREIGN_MARKS: Partial<Record<HandlebarsDialect, RegExp>> = {
  sendgrid: /<%[^%]{1,80}%>/g,
  mailgun: /%(?:recipient[._]|mailing_list_|tag_unsubscribe|unsubscribe_email)[a-z_.]{0,60}%/g,
};

/** An open block. */
interface Block {
  /** What its end names. */
  name: string;
  /** How it is closed in Liquid. */
  ends: readonly string[];
  /** What an `else` is in Liquid; null: there has been one, or there can be none. */
  otherwise: readonly string[] | null;
  /** What `else if` may be. */
  mayBranch: boolean;
  offset: number;
  /** Whether names refer to something else inside. */
  hasScope: boolean;
}

/** What names refer to. */
interface Scope {
  /** The path; '' at the top. */
  path: string;
  /** The name of the loop's variable in the source: `as |item|`. */
  alias: string | null;
  isLoop: boolean;
}

interface Tag {
  offset: number;
  end: number;
  whole: string;
  /** Without braces, tildes and blanks. */
  inside: string;
  raw: boolean;
  trim: readonly [left: boolean, right: boolean];
}

const COMPARISONS: Record<string, string> = {
  equals: '==',
  equal: '==',
  notEquals: '!=',
  greaterThan: '>',
  lessThan: '<',
};
const WORDS = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s"']+/g;

/**
 * Converts a source. `fallbacks`: defaults by the names of variables, which the service stores with the template. `content`:
 * what a layout inserts.
 */
export function convertHandlebars(
  source: string,
  dialect: HandlebarsDialect,
  { fallbacks, content }: { fallbacks?: ReadonlyMap<string, string>; content?: Converted } = {},
): Converted {
  const parts = createParts(source);
  const loopName = createLoopNames(source);
  const blocks: Block[] = [];
  const scopes: Scope[] = [{ path: '', alias: null, isLoop: false }];
  const isMustachio = dialect === 'postmark';

  /** The path of an expression in Liquid; null: it has none. */
  function pathOf(expression: string): string | null {
    let scope = scopes.length - 1;
    let rest = expression;
    if (rest.startsWith('@root.')) {
      scope = 0;
      rest = rest.slice('@root.'.length);
    }
    while (rest.startsWith('../')) {
      scope--;
      rest = rest.slice('../'.length);
    }
    const base = scopes[scope];
    if (base === undefined) return null;
    if (rest === '.' || rest === 'this') return base.path === '' ? null : base.path;
    rest = rest.replace(/^(?:this[./]|\.\/)/, '');
    const segments = rest.split(/[./]/).map((segment) => /^\[([^\]]*)\]$/.exec(segment)?.[1] ?? segment);
    const aliased = scopes.findLast(({ alias }) => alias !== null && alias === segments[0]);
    const path =
      aliased === undefined ? liquidPath(segments) : liquidPath([aliased.path, ...segments.slice(1)]);
    if (path === null || aliased !== undefined || base.path === '') return path;
    return `${base.path}.${path}`;
  }

  /** A variable of a loop: @index, @first, @last. */
  function loopVariable(expression: string): string | null {
    if (scopes.at(-1)?.isLoop !== true) return null;
    if (expression === '@index') return 'forloop.index0';
    return expression === '@first' ? 'forloop.first' : expression === '@last' ? 'forloop.last' : null;
  }

  /** A value in a comparison. */
  function operand(word: string): string | null {
    if (/^-?\d{1,15}(?:\.\d{1,15})?$|^(?:true|false)$/.test(word)) return word;
    const [, double, single] = /^(?:"([^"\\]*)"|'([^'\\]*)')$/.exec(word) ?? [];
    if (double !== undefined || single !== undefined) return JSON.stringify(double ?? single);
    return loopVariable(word) ?? pathOf(word);
  }

  /** The condition of `if x`, `equals a b`; null: it has no equivalent. */
  function condition([helper = '', ...words]: readonly string[]): string | null {
    const [first = '', second = ''] = words;
    if (helper === 'if' && words.length === 1) {
      const loop = loopVariable(first);
      const path = loop ?? pathOf(first);
      return path === null ? null : loop === null ? `${path} | default: false` : path;
    }
    const operator = isMustachio ? undefined : COMPARISONS[helper];
    if (operator === undefined || words.length !== 2) return null;
    const [left, right] = [operand(first), operand(second)];
    return left === null || right === null ? null : `${left} ${operator} ${right}`;
  }

  function write(tags: readonly string[], { trim: [left, right] }: Tag): void {
    for (const [index, tag] of tags.entries()) {
      const start = left && index === 0 ? '{%-' : '{%';
      const end = right && index === tags.length - 1 ? '-%}' : '%}';
      parts.tag(`${start} ${tag} ${end}`);
    }
  }

  function open(
    tag: Tag,
    block: Omit<Block, 'offset' | 'hasScope'>,
    begins: readonly string[],
    scope?: Scope,
  ): void {
    write(begins, tag);
    blocks.push({ ...block, offset: tag.offset, hasScope: scope !== undefined });
    if (scope !== undefined) scopes.push(scope);
  }

  /** A block without an equivalent: its end is expected, and nothing is written. */
  function openUnknown(tag: Tag, name: string, reason: string): void {
    parts.fault(tag.offset, tag.whole, reason);
    blocks.push({ name, ends: [], otherwise: [], mayBranch: true, offset: tag.offset, hasScope: false });
  }

  function openBlock(tag: Tag): void {
    const inside = tag.inside.slice(1).trim();
    const words: string[] = inside.match(WORDS) ?? [];
    const [helper = '', first = ''] = words;
    const looped = /^each\s+(\S+)(?:\s+as\s+\|\s*([A-Za-z_]\w*)\s*\|)?$/.exec(inside);
    if (looped !== null) {
      const path = pathOf(looped[1] ?? '');
      if (path === null) return openUnknown(tag, 'each', NO_PATH);
      const item = loopName(scopes.filter(({ isLoop }) => isLoop).length);
      const block = {
        name: 'each',
        ends: ['endfor', 'endif'],
        otherwise: ['endfor', 'else'],
        mayBranch: false,
      };
      const begins = [`if ${path} | default: false`, `for ${item} in ${path}`];
      return open(tag, block, begins, { path: item, alias: looped[2] ?? null, isLoop: true });
    }
    if (helper === 'each') return openUnknown(tag, 'each', NO_EQUIVALENT);
    const isSection = isMustachio && words.length === 1;
    if (isSection || (helper === 'with' && words.length === 2 && !isMustachio)) {
      const path = pathOf(isSection ? helper : first);
      if (path === null) return openUnknown(tag, helper, NO_PATH);
      const block = {
        name: helper,
        ends: ['endif'],
        otherwise: isSection ? null : ['else'],
        mayBranch: false,
      };
      return open(tag, block, [`if ${path} | default: false`], { path, alias: null, isLoop: false });
    }
    if (isMustachio) return openUnknown(tag, helper, NO_EQUIVALENT);
    if (helper === 'unless' && words.length === 2) {
      const negated = condition(['if', first]);
      if (negated === null) return openUnknown(tag, helper, NO_PATH);
      const block = { name: helper, ends: ['endunless'], otherwise: ['else'], mayBranch: true };
      return open(tag, block, [`unless ${negated}`]);
    }
    const test = condition(words);
    if (test === null) return openUnknown(tag, helper, helper === 'if' ? NO_PATH : NO_HELPER);
    open(tag, { name: helper, ends: ['endif'], otherwise: ['else'], mayBranch: true }, [`if ${test}`]);
  }

  function openInverted(tag: Tag): void {
    const name = tag.inside.slice(1).trim();
    if (name === '') return branch(tag, []);
    const path = pathOf(name);
    if (path === null) return openUnknown(tag, name, NO_PATH);
    const block = { name, ends: ['endunless'], otherwise: null, mayBranch: false };
    open(tag, block, [`unless ${path} | default: false`]);
  }

  /** `else`, or `else if x`. */
  function branch(tag: Tag, words: readonly string[]): void {
    const block = blocks.at(-1);
    if (block === undefined || block.otherwise === null)
      return parts.fault(tag.offset, tag.whole, 'is in no condition');
    if (words.length > 0) {
      const test = block.mayBranch ? condition(words) : null;
      if (test === null) return parts.fault(tag.offset, tag.whole, NO_EQUIVALENT);
      return write(block.ends.length === 0 ? [] : [`elsif ${test}`], tag);
    }
    write(block.otherwise, tag);
    // The loop has ended before the else.
    if (block.name === 'each' && block.ends.length > 0) {
      scopes.pop();
      block.hasScope = false;
      block.ends = ['endif'];
    }
    block.otherwise = null;
  }

  function close(tag: Tag): void {
    const name = tag.inside.slice(1).trim();
    const block = blocks.at(-1);
    if (block === undefined || block.name !== name)
      return parts.fault(tag.offset, tag.whole, 'closes nothing that is open');
    blocks.pop();
    if (block.hasScope) scopes.pop();
    write(block.ends, tag);
  }

  function insert(tag: Tag): void {
    const { inside, trim } = tag;
    const expression = inside.replace(/^&\s*/, '');
    const raw = tag.raw || expression !== inside;
    if (isMustachio && inside === '@content') return insertContent(tag);
    const [, name = expression, written] =
      dialect === 'resend' ? (/^([^|]*[^|\s])\s*\|([^|]*)$/.exec(expression) ?? []) : [];
    const service = SERVICE[dialect]?.[name];
    if (service !== undefined) return parts.value(service, { trim });
    const withDefault =
      dialect === 'sendgrid'
        ? /^insert\s+(\S+)(?:\s+"default=([^"]*)"|\s+'default=([^']*)')?$/.exec(inside)
        : null;
    const variable = withDefault?.[1] ?? name;
    if (/\s/.test(variable)) return parts.fault(tag.offset, tag.whole, NO_HELPER);
    const path = loopVariable(variable) ?? pathOf(variable);
    if (path === null) return parts.fault(tag.offset, tag.whole, NO_PATH);
    const fallback =
      withDefault?.[2] ?? withDefault?.[3] ?? written?.trim() ?? fallbacks?.get(variable) ?? null;
    parts.value(path, { raw, fallback, trim });
  }

  function insertContent(tag: Tag): void {
    if (content === undefined) return parts.fault(tag.offset, tag.whole, 'is for layouts');
    for (const part of content.parts) {
      if ('text' in part) parts.text(part.text);
      else if ('tag' in part) parts.tag(part.tag);
      else parts.value(part.value, part);
    }
  }

  function read(tag: Tag): void {
    const { inside } = tag;
    if (inside.startsWith('!')) return;
    if (inside.startsWith('#')) return openBlock(tag);
    if (inside.startsWith('^')) return openInverted(tag);
    if (inside.startsWith('/')) return close(tag);
    if (inside.startsWith('>'))
      return parts.fault(tag.offset, tag.whole, 'partials of another service are not moved');
    if (inside.startsWith('='))
      return parts.fault(tag.offset, tag.whole, 'other delimiters have no equivalent');
    if (inside === 'else' && !isMustachio) return branch(tag, []);
    if (inside.startsWith('else ') && !isMustachio)
      return branch(tag, inside.slice('else '.length).match(WORDS) ?? []);
    insert(tag);
  }

  let at = 0;
  for (;;) {
    const tag = nextTag(source, at);
    const end = tag?.offset ?? source.length;
    const isAlone = tag !== null && !isMustachio && isStandalone(source, tag);
    const text = source.slice(at, isAlone ? Math.max(at, source.lastIndexOf('\n', end - 1) + 1) : end);
    addText(text, at, tag !== null);
    if (tag === null) break;
    if (tag.end === -1) {
      parts.fault(tag.offset, tag.whole, 'is not closed');
      break;
    }
    read(tag);
    at = isAlone ? afterLine(source, tag.end) : tag.end;
  }
  for (const { name, offset } of blocks.slice(-1)) parts.fault(offset, `{{#${name}`, 'is not closed');
  return parts.converted();

  /** Text with marks of the service. */
  function addText(text: string, offset: number, isBeforeBraces: boolean): void {
    checkText(parts, offset, text, isBeforeBraces);
    let rest = text;
    for (;;) {
      const [first] = (MARKS[dialect] ?? [])
        .map(([mark, variable]) => ({ mark, variable, index: rest.indexOf(mark) }))
        .filter(({ index }) => index !== -1)
        .toSorted((one, two) => one.index - two.index);
      if (first === undefined) break;
      parts.text(rest.slice(0, first.index));
      parts.value(first.variable);
      rest = rest.slice(first.index + first.mark.length);
    }
    const start = offset + text.length - rest.length;
    const foreign = FOREIGN_MARKS[dialect];
    if (foreign !== undefined)
      for (const { 0: mark, index } of rest.matchAll(foreign))
        parts.fault(start + index, mark, NO_EQUIVALENT);
    parts.text(rest);
  }
}

const NO_EQUIVALENT = 'has no exact equivalent';
const NO_HELPER = 'is a helper without an exact equivalent';
const NO_PATH = 'the name cannot be written in Liquid';

/** The next tag; `end` -1: it is not closed. */
function nextTag(source: string, from: number): Tag | null {
  const offset = source.indexOf('{{', from);
  if (offset === -1) return null;
  const isLong = source.startsWith('{{!--', offset) || source.startsWith('{{~!--', offset);
  const raw = source[offset + 2] === '{';
  const closing = isLong ? '--' : raw ? '}}}' : '}}';
  const found = source.indexOf(closing, offset + (isLong ? 5 : 2));
  const close = isLong && found !== -1 ? source.indexOf('}}', found) : found;
  const start = offset + (raw ? 3 : 2);
  if (close === -1 || (!isLong && source.slice(start, close).includes('{{')))
    return {
      offset,
      end: -1,
      whole: source.slice(offset, offset + 40),
      inside: '',
      raw,
      trim: [false, false],
    };
  const end = close + (isLong ? 2 : closing.length);
  const text = source.slice(start, close);
  const trim = [text.startsWith('~'), text.endsWith('~')] as const;
  const inside = text.slice(trim[0] ? 1 : 0, trim[1] ? -1 : undefined).trim();
  return { offset, end, whole: source.slice(offset, end), inside, raw, trim };
}

/** Whether a tag that inserts nothing is alone on its line, which Handlebars then removes. */
function isStandalone(source: string, { offset, end, inside }: Tag): boolean {
  if (end === -1 || !/^(?:[#^/!]|else\b)/.test(inside)) return false;
  const before = source.slice(source.lastIndexOf('\n', offset - 1) + 1, offset);
  const lineEnd = source.indexOf('\n', end);
  const after = source.slice(end, lineEnd === -1 ? undefined : lineEnd);
  return before.trim() === '' && after.trim() === '';
}

function afterLine(source: string, from: number): number {
  const lineEnd = source.indexOf('\n', from);
  return lineEnd === -1 ? source.length : lineEnd + 1;
}
