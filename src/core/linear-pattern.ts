/**
 * Regular expressions whose time is linear in the text: the pattern is a program of at most 500 steps, and all of its
 * alternatives advance together (Thompson's construction), so that no text makes it backtrack. Without captures, back
 * references and lookaround. Case is ignored.
 */
export interface LinearPattern {
  /** Whether the pattern occurs in the text. */
  matches(text: string): boolean;
}

/** The steps of a program. `fork`: two steps follow. */
type Step =
  | { kind: 'char'; accepts: (char: string) => boolean }
  | { kind: 'fork'; to: readonly [number, number] }
  | { kind: 'jump'; to: number }
  | { kind: 'start' }
  | { kind: 'end' }
  | { kind: 'boundary' };

const MAX_STEPS = 500;
const MAX_REPEATS = 50;

class PatternFault extends Error {}

/** Compiles a pattern. Returns what is wrong with it, a clause, instead of throwing. */
export function compilePattern(source: string): LinearPattern | string {
  try {
    const steps = new Parser(source).program();
    return { matches: (text) => run(steps, text.toLowerCase()) };
  } catch (error) {
    if (error instanceof PatternFault) return error.message;
    throw error;
  }
}

function run(steps: readonly Step[], text: string): boolean {
  const isWord = (at: number) => /\w/.test(text.charAt(at));
  let current = new Set<number>();
  /** Adds the step and those that follow it without a character. Returns whether the program has ended. */
  const add = (to: Set<number>, first: number, at: number): boolean => {
    const open = [first];
    for (let number = open.pop(); number !== undefined; number = open.pop()) {
      if (to.has(number)) continue;
      to.add(number);
      const step = steps[number];
      if (step === undefined) return true;
      if (step.kind === 'fork') open.push(...step.to);
      else if (step.kind === 'jump') open.push(step.to);
      else if (step.kind === 'start' && at === 0) open.push(number + 1);
      else if (step.kind === 'end' && at === text.length) open.push(number + 1);
      else if (step.kind === 'boundary' && isWord(at - 1) !== isWord(at)) open.push(number + 1);
    }
    return false;
  };
  for (let at = 0; at <= text.length; at++) {
    // The pattern may begin at every position.
    if (add(current, 0, at)) return true;
    const next = new Set<number>();
    const char = text.charAt(at);
    for (const number of current) {
      const step = steps[number];
      if (step?.kind === 'char' && char !== '' && step.accepts(char) && add(next, number + 1, at + 1))
        return true;
    }
    current = next;
  }
  return false;
}

const CLASSES: Readonly<Record<string, RegExp>> = { d: /\d/, w: /\w/, s: /\s/, D: /\D/, W: /\W/, S: /\S/ };

/** A recursive descent over the pattern that writes the program. */
class Parser {
  readonly #source: string;
  readonly #steps: Step[] = [];
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  program(): readonly Step[] {
    this.#alternatives();
    if (this.#at < this.#source.length) throw new PatternFault('has a ")" without "("');
    if (run(this.#steps, '')) throw new PatternFault('must not match the empty text');
    return this.#steps;
  }

  /** `a|b|c` */
  #alternatives(): void {
    const from = this.#steps.length;
    this.#sequence();
    if (this.#peek() !== '|') return;
    this.#at++;
    const first = this.#steps.splice(from);
    this.#push({ kind: 'fork', to: [from + 1, from + first.length + 2] });
    this.#append(first, 1);
    const exit = this.#push({ kind: 'jump', to: 0 });
    this.#alternatives();
    this.#steps[exit] = { kind: 'jump', to: this.#steps.length };
  }

  #sequence(): void {
    for (let char = this.#peek(); char !== '' && char !== '|' && char !== ')'; char = this.#peek()) {
      const from = this.#steps.length;
      this.#atom();
      this.#repeat(from);
    }
  }

  #atom(): void {
    const char = this.#next();
    if (char === '(') {
      if (this.#source.startsWith('?:', this.#at)) this.#at += 2;
      else if (this.#peek() === '?') throw new PatternFault('must not have lookaround or named groups');
      this.#alternatives();
      if (this.#next() !== ')') throw new PatternFault('has a "(" without ")"');
    } else if (char === '[') this.#char(this.#class());
    else if (char === '.') this.#char(() => true);
    else if (char === '^') this.#push({ kind: 'start' });
    else if (char === '$') this.#push({ kind: 'end' });
    else if ('*+?{'.includes(char)) throw new PatternFault(`has a "${char}" with nothing to repeat`);
    else if (char === '\\' && this.#peek() === 'b') {
      this.#at++;
      this.#push({ kind: 'boundary' });
    } else if (char === '\\') this.#char(this.#escape());
    else this.#char(equals(char));
  }

  #repeat(from: number): void {
    const [least, most] = this.#count();
    if (least === 1 && most === 1) return;
    const once = this.#steps.splice(from);
    for (let n = 0; n < least; n++) this.#append(once, this.#steps.length - from);
    if (most === Number.POSITIVE_INFINITY) {
      const fork = this.#push({ kind: 'fork', to: [0, 0] });
      this.#append(once, this.#steps.length - from);
      this.#push({ kind: 'jump', to: fork });
      this.#steps[fork] = { kind: 'fork', to: [fork + 1, this.#steps.length] };
      return;
    }
    const forks: number[] = [];
    for (let n = least; n < most; n++) {
      forks.push(this.#push({ kind: 'fork', to: [0, 0] }));
      this.#append(once, this.#steps.length - from);
    }
    for (const fork of forks) this.#steps[fork] = { kind: 'fork', to: [fork + 1, this.#steps.length] };
  }

  /** How often the atom before is repeated. A lazy `?` changes nothing: whether the pattern occurs is all that counts. */
  #count(): [number, number] {
    const simple = {
      '*': [0, Number.POSITIVE_INFINITY],
      '+': [1, Number.POSITIVE_INFINITY],
      '?': [0, 1],
    } as const;
    const char = this.#peek();
    let count: [number, number] = [1, 1];
    if (char === '*' || char === '+' || char === '?') {
      this.#at++;
      count = [...simple[char]];
    } else if (char === '{') {
      const found = /^\{(\d{1,3})(,(\d{0,3}))?\}/.exec(this.#source.slice(this.#at));
      if (found === null) throw new PatternFault('has a "{" that is no repetition such as {2,5}: write \\{');
      this.#at += found[0].length;
      const least = Number(found[1]);
      const most =
        found[2] === undefined ? least : found[3] === '' ? Number.POSITIVE_INFINITY : Number(found[3]);
      if (most < least || least > MAX_REPEATS || (most > MAX_REPEATS && Number.isFinite(most)))
        throw new PatternFault(`must repeat at most ${MAX_REPEATS} times`);
      count = [least, most];
    } else return count;
    if (this.#peek() === '?') this.#at++;
    if ('*+?{'.includes(this.#peek()) && this.#peek() !== '') throw new PatternFault('repeats a repetition');
    return count;
  }

  /** `[a-z0-9_]`, after the `[`. */
  #class(): (char: string) => boolean {
    const isNegated = this.#peek() === '^';
    if (isNegated) this.#at++;
    const tests: ((char: string) => boolean)[] = [];
    while (this.#peek() !== ']') {
      const char = this.#next();
      if (char === '') throw new PatternFault('has a "[" without "]"');
      if (char === '\\') {
        tests.push(this.#escape());
        continue;
      }
      const last = this.#source.charAt(this.#at + 1);
      if (this.#peek() !== '-' || last === ']' || last === '') {
        tests.push(equals(char));
        continue;
      }
      this.#at += 2;
      const isWithin = (each: string) => each >= char && each <= last;
      tests.push((each) => isWithin(each) || isWithin(each.toUpperCase()));
    }
    this.#at++;
    return (char) => tests.some((test) => test(char)) !== isNegated;
  }

  /** After a backslash. */
  #escape(): (char: string) => boolean {
    const char = this.#next();
    const known = CLASSES[char];
    if (known !== undefined) return (each) => known.test(each);
    if (char === '' || /[a-z0-9]/i.test(char)) throw new PatternFault(`must not have \\${char}`);
    return equals(char);
  }

  #append(steps: readonly Step[], by: number): void {
    for (const step of steps) {
      if (step.kind === 'jump') this.#push({ kind: 'jump', to: step.to + by });
      else if (step.kind === 'fork') this.#push({ kind: 'fork', to: [step.to[0] + by, step.to[1] + by] });
      else this.#push(step);
    }
  }

  #char(accepts: (char: string) => boolean): void {
    this.#push({ kind: 'char', accepts });
  }

  #push(step: Step): number {
    if (this.#steps.length >= MAX_STEPS) throw new PatternFault('is too large');
    return this.#steps.push(step) - 1;
  }

  #peek(): string {
    return this.#source.charAt(this.#at);
  }

  #next(): string {
    return this.#source.charAt(this.#at++);
  }
}

/** Texts are in lower case. */
function equals(char: string): (other: string) => boolean {
  const lower = char.toLowerCase();
  return (other) => other === lower;
}
