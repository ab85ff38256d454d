import { z } from 'zod';
import { textFault } from '../../templates/text.ts';

/** Texts in requests, none of which may hold what no mail may hold. */

/** A name or a subject: one line without control characters, blanks around it dropped. */
export function line(max: number) {
  return sound(
    z
      .string()
      .trim()
      .min(1)
      .max(max)
      .regex(/^[^\p{Cc}\p{Zl}\p{Zp}]*$/u, 'must be one line without control characters'),
  );
}

/** Text of any lines, as it is; without `max` only the body's limit bounds it. */
export function lines(max?: number) {
  return sound(max === undefined ? z.string() : z.string().max(max));
}

function sound(form: z.ZodString) {
  return form.superRefine((text, context) => {
    const fault = textFault(text);
    if (fault !== null) context.addIssue({ code: 'custom', message: fault });
  });
}
