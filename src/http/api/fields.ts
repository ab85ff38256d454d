import * as z from 'zod';
import { iso, parseMoment } from '../../core/clock.ts';
import type { RefusalCode } from '../../core/refusal.ts';
import { textFault } from '../../mail/text-fault.ts';
import { CODE_KEYWORD } from '../validation/unknown-fields.ts';

/** One line without control characters, trimmed. `max`: characters. */
export function optionalLine(max: number) {
  return withoutFaults(
    z
      .string()
      .trim()
      .max(max)
      .regex(/^[^\p{Cc}\p{Zl}\p{Zp}]*$/u, 'must be one line without control characters'),
  );
}

/** A line that is not empty: a name or a subject. */
export function line(max: number) {
  return optionalLine(max).min(1);
}

/** The name of a resource. */
export const resourceName = line(200).meta({ id: 'Name' });

/** Text of any number of lines, unchanged. `max`: characters; without it the limit of the body applies. */
export function lines(max?: number) {
  return withoutFaults(max === undefined ? z.string() : z.string().max(max));
}

/** Rejects characters that no mail may contain. */
function withoutFaults(schema: z.ZodString) {
  return schema.superRefine((text, context) => {
    const fault = textFault(text);
    if (fault !== null) context.addIssue({ code: 'custom', message: fault });
  });
}

/**
 * Limits the entries of a list or map. `code`: of the refusal, in place of VALIDATION_ERROR. The limit becomes
 * `maxItems` or `maxProperties` of the JSON Schema.
 */
export function atMost<Schema extends z.ZodArray | z.ZodRecord>(
  schema: Schema,
  max: number,
  code?: RefusalCode,
): Schema {
  const limit = schema.type === 'array' ? { maxItems: max } : { maxProperties: max };
  z.globalRegistry.add(schema, code === undefined ? limit : { ...limit, [CODE_KEYWORD]: code });
  return schema;
}

/** `data` of a response that has only a message. */
export const messageResult = z.object({ message: z.string() }).meta({ id: 'MessageResult' });

const NOT_A_TIME = 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z';

/** Epoch ms; null: it is no time with a zone. That of a day alone is not known. */
function timeOf(text: string): number | null {
  return text.length > 'yyyy-mm-dd'.length ? parseMoment(text) : null;
}

/** A time in a request, with any offset; in UTC with milliseconds. */
export const requestTime = z
  .string()
  .refine((text) => timeOf(text) !== null, NOT_A_TIME)
  .overwrite((text) => {
    const at = timeOf(text);
    return at === null ? text : iso(at);
  })
  .meta({ format: 'date-time' });

/** The fields that an update names: those that are undefined stay unchanged. */
export function definedFields<Body extends object>(
  body: Body,
): { [Field in keyof Body]?: Exclude<Body[Field], undefined> } {
  // Filtering preserves the names; the type of `entries` loses them.
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as {
    [Field in keyof Body]?: Exclude<Body[Field], undefined>;
  };
}
