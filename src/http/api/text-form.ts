import { z } from 'zod';
import { textFault } from '../../templates/text.ts';

/** A name or a subject: one trimmed line without control characters, and only characters that mail may contain. */
export function line(max: number) {
  return checked(
    z
      .string()
      .trim()
      .min(1)
      .max(max)
      .regex(/^[^\p{Cc}\p{Zl}\p{Zp}]*$/u, 'must be one line without control characters'),
  );
}

/** Text of any number of lines, unchanged; without `max` only the limit of the body applies. */
export function lines(max?: number) {
  return checked(max === undefined ? z.string() : z.string().max(max));
}

function checked(form: z.ZodString) {
  return form.superRefine((text, context) => {
    const fault = textFault(text);
    if (fault !== null) context.addIssue({ code: 'custom', message: fault });
  });
}

/** The fields of a body that are not undefined. */
export function withoutUndefined<Body extends object>(
  body: Body,
): { [Field in keyof Body]?: Exclude<Body[Field], undefined> } {
  // Sound: filtering the entries keeps the names and types of the others.
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as {
    [Field in keyof Body]?: Exclude<Body[Field], undefined>;
  };
}
