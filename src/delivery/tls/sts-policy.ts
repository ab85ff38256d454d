import { fromWire } from '../../dns/names.ts';

/*
 * The texts of MTA-STS (RFC 8461): the TXT record that announces a policy (§3.1), and the policy (§3.2). Anyone can
 * publish them: what is not valid is no policy. They are parsed in the main thread in linear time: lookbehinds let a pattern
 * search each run of blanks or line ends only once.
 */

/** A valid policy (RFC 8461 §3.2). */
export interface StsPolicy {
  mode: 'enforce' | 'testing' | 'none';
  /** Patterns of MX hosts, lower case; `*.` stands for one label. Empty only in mode none. */
  mx: string[];
  /** Seconds. */
  maxAge: number;
}

/** A year and a day (§3.2); a larger value counts as this one, because ignoring the policy would protect less. */
const MAX_AGE = 31_557_600;
/** A domain needs a few; the policy is kept for its whole lifetime. */
const MAX_PATTERNS = 64;

const RECORD_PREFIX = /^v=STSv1[ \t]*;/;
const RECORD_FIELD = /^([A-Za-z0-9][\w.-]{0,31})=([\x21-\x3a\x3c\x3e-\x7e]+)$/;
const POLICY_ID = /^[A-Za-z0-9]{1,32}$/;

/**
 * The id in the TXT records at `_mta-sts.<domain>`; null when there is no valid announcement: none or several records of
 * this version, or one that is malformed.
 */
export function parseStsRecord(records: readonly string[]): string | null {
  const [record, ...others] = records.filter((text) => RECORD_PREFIX.test(text));
  if (record === undefined || others.length > 0) return null;
  const fields = record.split(/(?<![ \t])[ \t]*;[ \t]*/);
  if (fields.at(-1) === '') fields.pop();
  let id: string | null = null;
  for (const field of fields) {
    const [, name, value] = RECORD_FIELD.exec(field) ?? [];
    if (name === undefined || value === undefined) return null;
    if (name === 'id') id ??= value;
  }
  return id !== null && POLICY_ID.test(id) ? id : null;
}

const FIELD = /^([A-Za-z0-9][\w.-]{0,31}):(.*)$/;
const DIGITS = /^\d{1,10}$/;
const MODES = ['enforce', 'testing', 'none'] as const;

/** Parses a policy; returns what is wrong with it if it is not valid. */
export function parseStsPolicy(text: string): StsPolicy | string {
  const first = new Map<string, string>();
  const mx = new Set<string>();
  for (const line of text.replace(/(?<![\r\n])[\r\n]+$/, '').split(/\r?\n/)) {
    const [, name, rest = ''] = FIELD.exec(line) ?? [];
    const value = trimBlanks(rest);
    if (name === undefined) return `line ${JSON.stringify(line.slice(0, 80))} is not "name: value"`;
    if (name !== 'mx') {
      // §3.2: of a field that occurs twice the first counts.
      if (!first.has(name)) first.set(name, value);
      continue;
    }
    const pattern = patternOf(value);
    if (pattern === null) return `mx ${JSON.stringify(value.slice(0, 80))} is not a host name or pattern`;
    mx.add(pattern);
    if (mx.size > MAX_PATTERNS) return `it has more than ${MAX_PATTERNS} mx fields`;
  }
  if (first.get('version') !== 'STSv1') return 'its version is not STSv1';
  const mode = MODES.find((each) => each === first.get('mode'));
  if (mode === undefined) return 'its mode is not enforce, testing or none';
  const maxAge = first.get('max_age') ?? '';
  if (!DIGITS.test(maxAge)) return 'its max_age is not a number of seconds';
  if (mx.size === 0 && mode !== 'none') return 'it has no mx field';
  return { mode, mx: [...mx], maxAge: Math.min(Number(maxAge), MAX_AGE) };
}

/** The text without spaces and tabs around it. */
function trimBlanks(text: string): string {
  return text.replace(/^[ \t]+/, '').replace(/(?<![ \t])[ \t]+$/, '');
}

const HOST = /^([a-z0-9]([a-z0-9-]*[a-z0-9])?)(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;

/** A host name, or one whose leftmost label is `*`; null: neither. */
function patternOf(text: string): string | null {
  const pattern = text.toLowerCase();
  const name = pattern.startsWith('*.') ? pattern.slice(2) : pattern;
  return fromWire(name) === name && HOST.test(name) ? pattern : null;
}

/** Whether an MX host is in the policy (§4.1): `*.` stands for exactly one label. */
export function isInPolicy({ mx }: Pick<StsPolicy, 'mx'>, host: string): boolean {
  const name = host.toLowerCase();
  const dot = name.indexOf('.');
  return mx.includes(name) || (dot > 0 && mx.includes(`*${name.slice(dot)}`));
}

/** The lines of a policy for a report (RFC 8460 §4.4). */
export function policyLines({ mode, mx, maxAge }: StsPolicy): string[] {
  return ['version: STSv1', `mode: ${mode}`, ...mx.map((name) => `mx: ${name}`), `max_age: ${maxAge}`];
}
