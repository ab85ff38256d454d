import * as z from 'zod';
import { duration, HOST_PATTERN } from './setting-types.ts';

/*
 * The operator's rules for the replies of receivers (`delivery.replies`). A text is words with `*` for any words between
 * them, not a regular expression, so that no reply makes it expensive to match.
 */

/** The meanings that a rule can assign to a reply; mail/classify/rules.ts has the consequences of each. */
export const REPLY_MEANINGS = [
  'no such recipient',
  'possibly no such recipient',
  'mailbox inactive',
  'mailbox full',
  'blocked by recipient',
  'recipient rate limit',
  'no such domain',
  'domain accepts no mail',
  'message too large',
  'spam',
  'content rejected',
  'message rejected by policy',
  'sender rejected',
  'sender not authenticated',
  'IP address blocklisted',
  'rate limit',
  'sender rate limit',
  'IP address rate limit',
  'greylisted',
  'network error',
  'TLS failed',
  'relaying denied',
  'protocol error',
  'server error',
] as const;
export type ReplyMeaning = (typeof REPLY_MEANINGS)[number];

const MAX_RULES = 500;
const MAX_TEXT_LENGTH = 200;
const MAX_GAPS = 5;
/** A shorter text would match unrelated replies. */
const MIN_PART_LENGTH = 3;

const text = z
  .string()
  .max(MAX_TEXT_LENGTH)
  .transform((given) => given.toLowerCase().replace(/\s+/g, ' ').trim())
  .superRefine((given, context) => {
    const fault = (message: string) => context.addIssue({ code: 'custom', message });
    const parts = given.split(' * ');
    if (parts.some((part) => part.includes('*')))
      fault('must have "*" only between words, with a space on both sides, as in "too many * connections"');
    else if (parts.some((part) => part.length < MIN_PART_LENGTH))
      fault(`must have at least ${MIN_PART_LENGTH} characters, also between two "*"`);
    else if (parts.length > MAX_GAPS + 1) fault(`must have at most ${MAX_GAPS} "*"`);
  });

export const replyRule = z
  .strictObject({
    text: text.optional(),
    code: z.int().min(400).max(599).optional(),
    enhanced: z
      .string()
      .regex(/^[45x]\.(\d{1,3}|x)\.(\d{1,3}|x)$/, 'must be an enhanced code such as "4.7.28" or "5.7.x"')
      .optional(),
    host: z
      .string()
      .max(255)
      .regex(HOST_PATTERN, 'must be an MX host or a domain above it, such as "mx.example.com"')
      .transform((host) => host.toLowerCase().replace(/^\*\./, ''))
      .optional(),
    meaning: z.enum(REPLY_MEANINGS),
    action: z.enum(['defer', 'bounce']).optional(),
    retryAfter: duration.optional(),
  })
  .refine(
    ({ text: words, code, enhanced }) => words !== undefined || code !== undefined || enhanced !== undefined,
    'needs text, code or enhanced',
  )
  .refine(
    ({ action, retryAfter }) => action !== 'bounce' || retryAfter === undefined,
    'must not have retryAfter with action = "bounce"',
  );
export const replyRules = z.array(replyRule).max(MAX_RULES);

export type ReplyRule = z.output<typeof replyRule>;
