import { expect, it } from 'vitest';
import * as z from 'zod';
import { REPLY_PHASES } from '../../../src/config/reply-rules.ts';
import { WORDING } from '../../../src/mail/incoming/wording.ts';

const phrases = z
  .array(
    z
      .string()
      .min(3)
      .regex(/^[^A-Z]+$/),
  )
  .min(1);

it('has lists of phrases in lower case', () => {
  const form = z.strictObject({
    systemSenders: phrases,
    failureSubjects: phrases,
    failurePhrases: phrases,
    delayPhrases: phrases,
    autoReplyFields: phrases,
    announcements: phrases,
    announcementPrefixes: phrases,
    command: z.array(z.strictObject({ phase: z.enum(REPLY_PHASES), phrases })).min(1),
  });
  expect(form.parse(WORDING)).toEqual(WORDING);
});
