import type * as z from 'zod';
import { isRefusal, Refusal, type RefusalDetail, shortened } from '../../core/refusal.ts';
import { misnamedFields } from './misnamed-fields.ts';
import { fieldPath, type UnknownFields, unknownFields } from './unknown-fields.ts';

/*
 * Validation of request data: the issues of a schema become a `VALIDATION_ERROR` that names every invalid field by its
 * path and states what it must be. A message that a schema defines itself takes precedence.
 */

type Issue = z.core.$ZodIssue;
type RawIssue = z.core.$ZodRawIssue;

/** Errors named in a response; the others are counted. */
const MAX_DETAILS = 50;
/** Characters of a message that a schema defines itself. */
const MAX_MESSAGE = 300;

/** Returns the output of the schema for `value`, or a refusal. `whole` names the value as a whole in messages (`body`). */
export function parseInput<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  whole: string,
): z.output<Schema> | Refusal {
  const input = readInput(schema, value, whole);
  return isRefusal(input) ? input : input.value;
}

/** As `parseInput`, with the fields that the schema does not define. `isStrict`: those that are misnamed are refused. */
export function readInput<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  whole: string,
  isStrict = false,
): { value: z.output<Schema>; unknown: UnknownFields } | Refusal {
  const unknown = unknownFields(schema, value, whole);
  if (isRefusal(unknown)) return unknown;
  // First: the field that is meant can be a required one, which is then missing.
  const misnamed = isStrict ? misnamedFields(unknown) : null;
  if (misnamed !== null) return misnamed;
  const result = schema.safeParse(value, { error: messageOf });
  return result.success ? { value: result.data, unknown } : refusalOf(result.error.issues, whole);
}

function refusalOf(issues: Issue[], whole: string): Refusal {
  const details: RefusalDetail[] = [];
  let count = 0;
  for (const issue of issues) {
    const left = MAX_DETAILS - details.length;
    if (left === 0) {
      count++;
      continue;
    }
    const found = detailsOf(issue, [], whole);
    count += found.length;
    details.push(...found.slice(0, left));
  }
  const [first] = details;
  const more = count > 1 ? ` (and ${count - 1} more)` : '';
  return new Refusal(
    'VALIDATION_ERROR',
    `${first?.field ?? whole}: ${first?.message ?? 'is invalid'}${more}`,
    {
      details,
    },
  );
}

function detailsOf(issue: Issue, prefix: PropertyKey[], whole: string): RefusalDetail[] {
  const path = [...prefix, ...issue.path];
  if (issue.code === 'unrecognized_keys') {
    return issue.keys
      .slice(0, MAX_DETAILS)
      .map((key) => ({ field: pathText([...path, key], whole), message: 'is not a field' }));
  }
  if (issue.code === 'invalid_union' && issue.message === NO_ALTERNATIVE) {
    const inner = intendedOf(issue.errors);
    if (inner !== null) return inner.flatMap((one) => detailsOf(one, path, whole));
    return [{ field: pathText(path, whole), message: eitherOf(issue.errors) }];
  }
  return [{ field: pathText(path, whole), message: shortened(issue.message, MAX_MESSAGE) }];
}

/**
 * The issues of the alternative that the value matches except for values inside it; null when none or several match.
 */
function intendedOf(alternatives: Issue[][]): Issue[] | null {
  const inside = alternatives.filter((issues) => issues.every((issue) => issue.path.length > 0));
  return inside.length === 1 ? (inside[0] ?? null) : null;
}

/** `must be a string or an array`, from the messages of the alternatives. */
function eitherOf(alternatives: Issue[][]): string {
  const expected = alternatives.map(([first]) => /^must be (.*)$/.exec(first?.message ?? '')?.[1]);
  const known = [...new Set(expected.filter((text) => text !== undefined))];
  return known.length === 0 ? NO_ALTERNATIVE : `must be ${known.join(' or ')}`;
}

function pathText(path: PropertyKey[], whole: string): string {
  return (
    path.reduce<string>(
      (text, step) => (typeof step === 'number' ? `${text}[${step}]` : fieldPath(text, String(step))),
      '',
    ) || whole
  );
}

const NO_ALTERNATIVE = 'has none of the allowed types';

const TYPES: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
  null: 'null',
  date: 'a date',
};

const FORMATS: Record<string, string> = {
  email: 'an email address',
  url: 'a URL',
  uuid: 'a UUID',
  datetime: 'a time such as 2026-01-31T12:00:00.000Z',
  date: 'a date such as 2026-01-31',
  ipv4: 'an IPv4 address',
  ipv6: 'an IPv6 address',
  base64: 'base64',
  json_string: 'JSON',
};

/** The message after `field: ` for issues without a message of the schema. */
function messageOf(issue: RawIssue): string | undefined {
  if (issue.input === undefined && issue.code.startsWith('invalid_')) return 'is required';
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${TYPES[issue.expected] ?? issue.expected}`;
    case 'too_small':
      return tooSmall(issue);
    case 'too_big':
      return `must ${measure(issue.origin, issue.maximum, issue.inclusive === false ? 'less than' : 'at most')}`;
    case 'invalid_format':
      return `must be ${FORMATS[issue.format] ?? `of the form ${issue.pattern ?? issue.format}`}`;
    case 'invalid_value':
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map((one) => JSON.stringify(one)).join(', ')}`;
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'invalid_union':
      return NO_ALTERNATIVE;
    case 'invalid_key':
      return `has a name that ${issue.issues[0]?.message ?? 'is not allowed'}`;
    default:
      return undefined;
  }
}

function tooSmall(issue: Extract<RawIssue, { code: 'too_small' }>): string {
  if (
    issue.minimum === 1 &&
    issue.inclusive !== false &&
    issue.origin !== 'number' &&
    issue.origin !== 'int'
  ) {
    return 'must not be empty';
  }
  return `must ${measure(issue.origin, issue.minimum, issue.inclusive === false ? 'more than' : 'at least')}`;
}

function measure(origin: string, bound: number | bigint | string | undefined, comparison: string): string {
  if (origin === 'string') return `have ${comparison} ${bound} characters`;
  if (origin === 'array' || origin === 'set' || origin === 'object' || origin === 'map') {
    return `have ${comparison} ${bound} entries`;
  }
  return `be ${comparison} ${bound}`;
}
