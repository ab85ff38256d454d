import type { Worker } from 'node:worker_threads';
import type { Log } from '../../core/log.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import { createLazyMailParser } from '../parser/mail-parser.ts';
import { namedRecipients, type SubmissionRequest, submissionRequest } from './request.ts';

/** Seconds for `Retry-After`, as the mails before it take milliseconds each. */
const RETRY_SECONDS = 1;

/**
 * Reads whole mails that come over HTTP as those that come over SMTP, in a thread of its own that starts with the first one:
 * accounts share it by the time that their mails take. `startThread`: default: the compiled program. `stop` ends the thread.
 */
export function createRawMail(log: Log, startThread?: () => Worker) {
  const parser = createLazyMailParser(log, { startThread });
  return {
    /**
     * The transactional send that the mail requests. `recipients`: the envelope; null: those of To, Cc and Bcc. Refuses a mail
     * that cannot be read completely.
     */
    read: async (
      accountId: string,
      raw: Buffer,
      recipients: readonly string[] | null,
    ): Promise<SubmissionRequest | Refusal> => {
      const origin = { priority: 'normal', caller: accountId, subject: accountId } as const;
      const mail = await parser.parse({ purpose: 'submission', raw }, origin);
      if (mail === null || ('unreadable' in mail && mail.unreadable === 'stopping'))
        return refuse('UNAVAILABLE', 'Too much mail is waiting to be read; try again', {
          retryAfter: RETRY_SECONDS,
        });
      if ('unreadable' in mail) return invalid('raw', 'cannot be read');
      if ('problem' in mail)
        return refuse('VALIDATION_ERROR', mail.problem, {
          details: [{ field: 'raw', message: mail.problem }],
        });
      const envelope = recipients ?? namedRecipients(mail);
      return isRefusal(envelope) ? envelope : submissionRequest(mail, envelope, 'tx');
    },
    stop: parser.stop,
  };
}
