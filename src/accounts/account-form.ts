import * as z from 'zod';

/*
 * Schemas of the fields of an account, for the API and the command line. The values are inserted into mail: one line
 * each, without control characters.
 */

function line(max: number, min = 1) {
  return z
    .string()
    .trim()
    .min(min)
    .max(max)
    .regex(/^\P{Cc}*$/u, 'must be one line without control characters');
}

const addressSchema = z
  .object({
    line1: line(200).describe('Street and number, or P.O. box.'),
    line2: line(200).optional(),
    city: line(100),
    region: line(100).optional().describe('State, province, canton.'),
    postalCode: line(20, 0).describe('Empty in a country that has none.'),
    country: line(100),
  })
  .meta({ id: 'PostalAddressInput' });

/** Changes of an account: an absent field is unchanged, null removes the value. */
export const accountPatchSchema = z.object({
  name: line(200).optional(),
  companyName: line(200).nullable().optional().describe('As it appears in the footer of every mail.'),
  companyAddress: addressSchema.nullable().optional(),
  abuseEmail: z.email().max(254).nullable().optional().describe('Where reports of abuse are sent.'),
  logoUrl: z
    .url({ protocol: /^https?$/, error: 'must be an http or https address' })
    .max(2000)
    .nullable()
    .optional(),
});

export type AccountPatch = z.output<typeof accountPatchSchema>;

export const accountInputSchema = z.object({
  name: line(200),
  companyName: line(200).optional(),
  companyAddress: addressSchema.optional(),
  /** Default: a generated id. */
  accountId: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/,
      'must be 1 to 64 letters, digits, "_" and "-", the first a letter or digit',
    )
    .optional(),
});

export type AccountInput = z.output<typeof accountInputSchema>;
