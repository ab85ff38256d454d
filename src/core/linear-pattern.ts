/**
 * Regular expressions whose time is linear in the text: the pattern is a graph of at most 500 states, and all of its
 * alternatives advance together (Thompson's construction), so that no text makes it backtrack. Without captures, back
 * references and lookaround. Case is ignored.
 */
export interface LinearPattern {
  /** Whether the pattern occurs in the text. */
  matches(text: string): boolean;
}

/** A state, with what follows it; null: the pattern has ended. */
type State =
  | { kind: 'char'; accepts: (char: string) => boolean; next: State }
  | { kind: 'fork'; next: State[] }
  | { kind: 'start' | 'end' | 'boundary'; next: State }
  | null;

/** Creates the states of a part of the pattern, new ones at each call. `next` follows them. */
type Part = (next: State) => State;

const MAX_STATES = 500;
/** Copies of repeated parts: an empty group has no state that would be counted. */
const MAX_COPIES = 10_000;
const MAX_REPEATS = 50;

class PatternFault extends Error {}

/** Compiles a pattern. Returns what is wrong with it, a clause, instead of throwing. */
export function compilePattern(source: string): LinearPattern | string {
  try {
    const first = parse(source);
    return { matches: (text) => run(first, text.toLowerCase()) };
  } catch (error) {
    if (error instanceof PatternFault) return error.message;
    throw error;
  }
}

function run(first: State, text: string): boolean {
  const isWord = (at: number) => /\w/.test(text.charAt(at));
  let current = new Set<State>();
  /** Adds the state and those that follow it without a character. Returns whether the pattern has ended. */
  const add = (to: Set<State>, from: State, at: number): boolean => {
    const open = [from];
    for (let state = open.pop(); state !== undefined; state = open.pop()) {
      if (state === null) return true;
      if (to.has(state)) continue;
      to.add(state);
      if (state.kind === 'fork') open.push(...state.next);
      else if (state.kind === 'start' && at === 0) open.push(state.next);
      else if (state.kind === 'end' && at === text.length) open.push(state.next);
      else if (state.kind === 'boundary' && isWord(at - 1) !== isWord(at)) open.push(state.next);
    }
    return false;
  };
  for (let at = 0; at <= text.length; at++) {
    // The pattern may begin at every position.
    if (add(current, first, at)) return true;
    const next = new Set<State>();
    const char = text.charAt(at);
    for (const state of current) {
      if (state?.kind === 'char' && char !== '' && state.accepts(char) && add(next, state.next, at + 1))
        return true;
    }
    current = next;
  }
  return false;
}

const CLASSES: Readonly<Record<string, RegExp>> = { d: /\d/, w: /\w/, s: /\s/, D: /\D/, W: /\W/, S: /\S/ };

/** A recursive descent over the pattern. Returns its first state. */
function parse(source: string): State {
  let at = 0;
  let states = 0;
  let copies = 0;
  const peek = () => source.charAt(at);
  const next = () => source.charAt(at++);

  function counted<Counted extends State>(state: Counted): Counted {
    if (++states > MAX_STATES) throw new PatternFault('is too large');
    return state;
  }

  const char =
    (accepts: (char: string) => boolean): Part =>
    (after) =>
      counted({ kind: 'char', accepts, next: after });
  const position =
    (kind: 'start' | 'end' | 'boundary'): Part =>
    (after) =>
      counted({ kind, next: after });

  /** `a|b|c` */
  function alternatives(): Part {
    const first = sequence();
    if (peek() !== '|') return first;
    at++;
    const others = alternatives();
    return (after) => counted({ kind: 'fork', next: [first(after), others(after)] });
  }

  function sequence(): Part {
    const parts: Part[] = [];
    while (!['', '|', ')'].includes(peek())) parts.push(repeated(atom()));
    return (after) => parts.reduceRight<State>((following, part) => part(following), after);
  }

  function atom(): Part {
    const given = next();
    if (given === '(') {
      if (source.startsWith('?:', at)) at += 2;
      else if (peek() === '?') throw new PatternFault('must not have lookaround or named groups');
      const group = alternatives();
      if (next() !== ')') throw new PatternFault('has a "(" without ")"');
      return group;
    }
    if (given === '[') return char(characterClass());
    if (given === '.') return char(() => true);
    if (given === '^') return position('start');
    if (given === '$') return position('end');
    if ('*+?{'.includes(given)) throw new PatternFault(`has a "${given}" with nothing to repeat`);
    if (given !== '\\') return char(equals(given));
    if (peek() !== 'b') return char(escaped());
    at++;
    return position('boundary');
  }

  function repeated(part: Part): Part {
    const [least, most] = times();
    const copied = (after: State) => {
      if (++copies > MAX_COPIES) throw new PatternFault('is too large');
      return part(after);
    };
    return (after) => {
      let first = after;
      if (most === Number.POSITIVE_INFINITY) {
        const loop = counted<{ kind: 'fork'; next: State[] }>({ kind: 'fork', next: [after] });
        loop.next.push(part(loop));
        first = loop;
      } else for (let n = least; n < most; n++) first = counted({ kind: 'fork', next: [part(first), after] });
      for (let n = 0; n < least; n++) first = copied(first);
      return first;
    };
  }

  /** How often the atom before is repeated. A lazy `?` changes nothing: whether the pattern occurs is all that counts. */
  function times(): [number, number] {
    const simple = {
      '*': [0, Number.POSITIVE_INFINITY],
      '+': [1, Number.POSITIVE_INFINITY],
      '?': [0, 1],
    } as const;
    const char = peek();
    let count: [number, number] = [1, 1];
    if (char === '*' || char === '+' || char === '?') {
      at++;
      count = [...simple[char]];
    } else if (char === '{') {
      const found = /^\{(\d{1,3})(,(\d{0,3}))?\}/.exec(source.slice(at));
      if (found === null) throw new PatternFault('has a "{" that is no repetition such as {2,5}: write \\{');
      at += found[0].length;
      const least = Number(found[1]);
      const most =
        found[2] === undefined ? least : found[3] === '' ? Number.POSITIVE_INFINITY : Number(found[3]);
      if (most < least || least > MAX_REPEATS || (most > MAX_REPEATS && Number.isFinite(most)))
        throw new PatternFault(`must repeat at most ${MAX_REPEATS} times`);
      count = [least, most];
    } else return count;
    if (peek() === '?') at++;
    if ('*+?{'.includes(peek()) && peek() !== '') throw new PatternFault('repeats a repetition');
    return count;
  }

  /** `[a-z0-9_]`, after the `[`. */
  function characterClass(): (char: string) => boolean {
    const isNegated = peek() === '^';
    if (isNegated) at++;
    const tests: ((char: string) => boolean)[] = [];
    while (peek() !== ']') {
      const char = next();
      if (char === '') throw new PatternFault('has a "[" without "]"');
      if (char === '\\') {
        tests.push(escaped());
        continue;
      }
      const last = source.charAt(at + 1);
      if (peek() !== '-' || last === ']' || last === '') {
        tests.push(equals(char));
        continue;
      }
      at += 2;
      const isWithin = (each: string) => each >= char && each <= last;
      tests.push((each) => isWithin(each) || isWithin(each.toUpperCase()));
    }
    at++;
    return (char) => tests.some((test) => test(char)) !== isNegated;
  }

  /** After a backslash. */
  function escaped(): (char: string) => boolean {
    const char = next();
    const known = CLASSES[char];
    if (known !== undefined) return (each) => known.test(each);
    if (char === '' || /[a-z0-9]/i.test(char)) throw new PatternFault(`must not have \\${char}`);
    return equals(char);
  }

  const pattern = alternatives();
  if (at < source.length) throw new PatternFault('has a ")" without "("');
  const first = pattern(null);
  if (run(first, '')) throw new PatternFault('must not match the empty text');
  return first;
}

/** Texts are in lower case. */
function equals(char: string): (other: string) => boolean {
  const lower = char.toLowerCase();
  return (other) => other === lower;
}
