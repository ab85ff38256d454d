import { z } from 'zod';
import { textFault } from '../../core/refusal.ts';

/** A name or a subject: one line without control characters, trimmed. `max`: characters. */
export function line(max: number) {
  return withoutFaults(
    z
      .string()
      .trim()
      .min(1)
      .max(max)
      .regex(/^[^\p{Cc}\p{Zl}\p{Zp}]*$/u, 'must be one line without control characters'),
  );
}

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

/** A time in a request, with any offset. */
export const requestTime = z.iso.datetime({
  offset: true,
  error: 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z',
});

/** The fields that an update names: those that are undefined stay unchanged. */
export function definedFields<Body extends object>(
  body: Body,
): { [Field in keyof Body]?: Exclude<Body[Field], undefined> } {
  // Filtering preserves the names; the type of `entries` loses them.
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as {
    [Field in keyof Body]?: Exclude<Body[Field], undefined>;
  };
}
