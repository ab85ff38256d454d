import { type Converted, checkText, createLoopNames, createParts, liquidPath } from './template-parts.ts';

/*
 * Converts templates of listmonk, which are those of Go (text/template). The fields of subscribers become those of contacts,
 * `.Tx.Data.x` the variable `x` of a send. `{{ template "content" . }}` becomes a block of a layout.
 */

/** Fields of the top, longest first: the path here. */
const FIELDS: readonly (readonly [field: string, path: string])[] = [
  ['Subscriber.Attribs', 'customFields'],
  ['Subscriber.Email', 'email'],
  ['Subscriber.FirstName', 'firstName'],
  ['Subscriber.LastName', 'lastName'],
  ['Subscriber.Name', `customFields.fullName`],
  ['Tx.Data', ''],
];
const LINKS: Readonly<Record<string, string>> = {
  UnsubscribeURL: 'unsubscribe_url',
  ManageURL: 'preferences_url',
  MessageURL: 'view_url',
};
const COMPARISONS: Readonly<Record<string, string>> = {
  eq: '==',
  ne: '!=',
  gt: '>',
  lt: '<',
  ge: '>=',
  le: '<=',
};
/** `{{ UnsubscribeURL }}?manage=true`: the page of preferences. */
const MANAGE = '?manage=true';
const WORDS = /"(?:[^"\\]|\\.)*"|`[^`]*`|\||[^\s"`|]+/g;
/** After a link that listmonk tracks: it is removed, as tracking is a setting here. */
const TRACKED = /(?<=[^\s"'<>])@TrackLink\b/g;
export const CONTENT_BLOCK = 'content';

interface Block {
  ends: readonly string[];
  /** Null: there has been one. */
  otherwise: string | null;
  mayBranch: boolean;
  offset: number;
  whole: string;
  hasScope: boolean;
}

interface Action {
  offset: number;
  end: number;
  whole: string;
  words: string[];
  isComment: boolean;
  trim: readonly [left: boolean, right: boolean];
}

/** Converts a source. */
export function convertGoTemplate(source: string): Converted {
  const parts = createParts(source);
  const loopName = createLoopNames(source);
  const blocks: Block[] = [];
  /** Paths that the dot refers to; '' at the top. */
  const scopes: string[] = [''];

  function pathOf(word: string): string | null {
    const isRoot = word.startsWith('$.');
    const field = isRoot ? word.slice(1) : word;
    const base = isRoot ? '' : (scopes.at(-1) ?? '');
    if (field === '.') return base === '' ? null : base;
    if (!field.startsWith('.')) return null;
    const name = field.slice(1);
    if (base !== '') {
      const path = liquidPath(name.split('.'));
      return path === null ? null : `${base}.${path}`;
    }
    for (const [known, path] of FIELDS) {
      if (name === known) return path === '' ? null : path;
      if (!name.startsWith(`${known}.`)) continue;
      const rest = name.slice(known.length + 1).split('.');
      return liquidPath(path === '' ? rest : [...path.split('.'), ...rest]);
    }
    return null;
  }

  function operand(word: string): string | null {
    if (/^-?\d{1,15}(?:\.\d{1,15})?$|^(?:true|false)$/.test(word)) return word;
    const text = stringOf(word);
    return text === null ? pathOf(word) : JSON.stringify(text);
  }

  /** A condition; `unless`: it is negated. Null: it has no equivalent. */
  function condition(words: readonly string[]): { test: string; negated: boolean } | null {
    const [first = '', second, third] = words;
    if (words.length === 1) {
      const path = pathOf(first);
      return path === null ? null : { test: `${path} | default: false`, negated: false };
    }
    if (first === 'not' && words.length === 2 && second !== undefined) {
      const path = pathOf(second);
      return path === null ? null : { test: `${path} | default: false`, negated: true };
    }
    const operator = COMPARISONS[first];
    if (operator === undefined || words.length !== 3 || second === undefined || third === undefined)
      return null;
    const [left, right] = [operand(second), operand(third)];
    return left === null || right === null ? null : { test: `${left} ${operator} ${right}`, negated: false };
  }

  function write(tags: readonly string[], { trim: [left, right] }: Action): void {
    for (const [index, tag] of tags.entries()) {
      const start = left && index === 0 ? '{%-' : '{%';
      const end = right && index === tags.length - 1 ? '-%}' : '%}';
      parts.tag(`${start} ${tag} ${end}`);
    }
  }

  function open(
    action: Action,
    begins: readonly string[],
    block: Omit<Block, 'offset' | 'whole' | 'hasScope'>,
    scope?: string,
  ): void {
    const { offset, whole } = action;
    write(begins, action);
    blocks.push({ ...block, offset, whole, hasScope: scope !== undefined });
    if (scope !== undefined) scopes.push(scope);
  }

  function openBlock(action: Action): void {
    const [keyword = '', ...words] = action.words;
    const [first = ''] = words;
    const path = words.length === 1 ? pathOf(first) : null;
    if (keyword === 'if') {
      const found = condition(words);
      if (found !== null) {
        const [begin, end] = found.negated ? ['unless', 'endunless'] : ['if', 'endif'];
        return open(action, [`${begin} ${found.test}`], {
          ends: [end ?? ''],
          otherwise: 'else',
          mayBranch: true,
        });
      }
    } else if (path !== null && keyword === 'with') {
      return open(
        action,
        [`if ${path} | default: false`],
        { ends: ['endif'], otherwise: 'else', mayBranch: false },
        path,
      );
    } else if (path !== null) {
      const item = loopName(scopes.length - 1);
      const begins = [`if ${path} | default: false`, `for ${item} in ${path}`];
      return open(action, begins, { ends: ['endfor', 'endif'], otherwise: 'else', mayBranch: false }, item);
    }
    parts.fault(action.offset, action.whole, NO_EQUIVALENT);
    blocks.push({
      ends: [],
      otherwise: '',
      mayBranch: true,
      offset: action.offset,
      whole: action.whole,
      hasScope: false,
    });
  }

  function branch(action: Action): void {
    const block = blocks.at(-1);
    if (block === undefined || block.otherwise === null)
      return parts.fault(action.offset, action.whole, 'is in no condition');
    const [, keyword, ...words] = action.words;
    if (keyword !== undefined) {
      const found = keyword === 'if' && block.mayBranch ? condition(words) : null;
      if (found === null || found.negated) return parts.fault(action.offset, action.whole, NO_EQUIVALENT);
      return write(block.ends.length === 0 ? [] : [`elsif ${found.test}`], action);
    }
    const isLoop = block.ends[0] === 'endfor';
    if (block.ends.length > 0) write(isLoop ? ['endfor', 'else'] : ['else'], action);
    if (block.hasScope) scopes.pop();
    block.hasScope = false;
    if (isLoop) block.ends = ['endif'];
    block.otherwise = null;
  }

  function close(action: Action): void {
    const block = blocks.pop();
    if (block === undefined) return parts.fault(action.offset, action.whole, 'closes nothing that is open');
    if (block.hasScope) scopes.pop();
    write(block.ends, action);
  }

  function insert({ offset, whole, words, trim }: Action): void {
    const [name = '', ...rest] = words;
    if (name === 'template' && stringOf(rest[0] ?? '') === 'content')
      return parts.tag(`{% block ${CONTENT_BLOCK} %}{% endblock %}`);
    const isCall = rest.length === 0 || (rest.length === 1 && rest[0] === '.');
    const link = LINKS[name];
    if (link !== undefined && isCall) return parts.value(link, { trim });
    if (name === 'TrackView' && isCall) return;
    const url = name === 'TrackLink' ? stringOf(rest[0] ?? '') : null;
    if (url !== null && (rest.length === 1 || rest[1] === '.')) return parts.text(url);
    const isSafe = name === 'Safe' && rest.length === 1;
    const isPiped = rest.length === 2 && rest[0] === '|' && rest[1] === 'Safe';
    const written = isSafe ? (rest[0] ?? '') : name;
    const text = isSafe || rest.length === 0 ? stringOf(written) : null;
    if (text !== null && !text.includes('{{')) return parts.text(text);
    const path = isSafe || isPiped || rest.length === 0 ? pathOf(written) : null;
    if (path === null) return parts.fault(offset, whole, NO_EQUIVALENT);
    parts.value(path, { raw: isSafe || isPiped, trim });
  }

  let at = 0;
  for (;;) {
    const action = nextAction(source, at);
    const text = source.slice(at, action?.offset ?? source.length);
    checkText(parts, at, text, action !== null);
    parts.text(text.replaceAll(TRACKED, ''));
    if (action === null) break;
    if (action.end === -1) {
      parts.fault(action.offset, action.whole, 'is not closed');
      break;
    }
    at = action.end;
    const [keyword = ''] = action.words;
    if (action.isComment) continue;
    if (keyword === 'UnsubscribeURL' && source.startsWith(MANAGE, at)) {
      parts.value('preferences_url', { trim: action.trim });
      at += MANAGE.length;
    } else if (keyword === 'if' || keyword === 'with' || keyword === 'range') openBlock(action);
    else if (keyword === 'else') branch(action);
    else if (keyword === 'end') close(action);
    else insert(action);
  }
  for (const { whole, offset } of blocks.slice(-1)) parts.fault(offset, whole, 'is not closed');
  return parts.converted();
}

const NO_EQUIVALENT = 'has no exact equivalent';

/** The text of a string literal; null: it is not one, or it has escapes. */
function stringOf(word: string): string | null {
  const [, double, raw] = /^(?:"([^"\\]*)"|`([^`]*)`)$/.exec(word) ?? [];
  return double ?? raw ?? null;
}

/** The next action; `end` -1: it is not closed. */
function nextAction(source: string, from: number): Action | null {
  const offset = source.indexOf('{{', from);
  if (offset === -1) return null;
  const left = /^-\s/.test(source.slice(offset + 2, offset + 4));
  const start = offset + (left ? 3 : 2);
  const isComment = /^\s{0,20}\/\*/.test(source.slice(start, start + 24));
  const close = isComment ? endOfComment(source, start) : endOfAction(source, start);
  if (close === -1) {
    const whole = source.slice(offset, offset + 40);
    return { offset, end: -1, whole, words: [], isComment, trim: [left, false] };
  }
  const end = close + 2;
  const right = /\s-$/.test(source.slice(close - 2, close));
  const inside = source.slice(start, right ? close - 1 : close);
  return {
    offset,
    end,
    whole: source.slice(offset, end),
    words: inside.match(WORDS) ?? [],
    isComment,
    trim: [left, right],
  };
}

/** The offset of `}}` after a comment; -1: there is none. */
function endOfComment(source: string, from: number): number {
  const end = source.indexOf('*/', from);
  return end === -1 ? -1 : source.indexOf('}}', end);
}

/** The offset of `}}` that is not in a string; -1: there is none. */
function endOfAction(source: string, from: number): number {
  let quote = '';
  for (let at = from; at < source.length; at++) {
    const char = source[at] ?? '';
    if (quote !== '') {
      if (char === '\\' && quote === '"') at++;
      else if (char === quote) quote = '';
    } else if (char === '"' || char === '`') quote = char;
    else if (source.startsWith('}}', at)) return at;
    else if (source.startsWith('{{', at)) return -1;
  }
  return -1;
}
