import * as z from 'zod';
import { SCOPES } from '../accounts/keys.ts';

/* Schemas of single values in the records of an exported account. */

const MAX_TEXT = 16 * 2 ** 20;
const MAX_SHORT = 2000;

/** Epoch ms. */
export const time = z.int().min(0).max(253_402_300_799_999);
export const count = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
export const flag = z.union([z.literal(0), z.literal(1)]);
export const id = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/, 'is not an id');
export const short = z.string().max(MAX_SHORT);
export const text = z.string().max(MAX_TEXT);
export const recipientHash = z
  .string()
  .regex(/^(?:email|phone)_[0-9a-f]{32}$/, 'is not the hash of a recipient');
export const useCase = z.enum(['tx', 'mk']);
export const domainName = z
  .string()
  .max(253)
  .regex(/^[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/, 'is not a domain name');
/** Bytes as base64. */
export const bytes = (length: number) =>
  z.base64().refine((value) => Buffer.from(value, 'base64').length === length, `must have ${length} bytes`);

/** JSON text that matches `schema`. */
export function json(schema: z.ZodType, max = MAX_TEXT) {
  return z
    .string()
    .max(max)
    .refine((value) => {
      try {
        return schema.safeParse(JSON.parse(value)).success;
      } catch {
        // Not JSON.
        return false;
      }
    }, 'is not JSON of the expected form');
}

/** The postal address as `accounts/accounts` validates it. */
export const companyAddress = z.strictObject({
  line1: z.string(),
  line2: z.string().optional(),
  city: z.string(),
  region: z.string().optional(),
  postalCode: z.string(),
  country: z.string(),
});

/** Without `operator`: an imported key must not have access to the whole installation. */
export const accountScope = z.enum(SCOPES.filter((scope) => scope !== 'operator'));
