import { dsn } from '../../smtp/mx/mails.ts';
import { type SmtpClient, smtpClient } from '../../support/smtp-client.ts';

/** Sends bounces for delivered messages to the MX listener, one at a time, several in a session as servers do. */
export interface Reporter {
  /** Sends a bounce for each; resolves when all are answered. Recipients whose bounce was accepted are in `reported`. */
  report(messages: readonly (readonly [recipient: string, envelopeSender: string])[]): Promise<void>;
  readonly reported: ReadonlySet<string>;
  /** Replies other than 250, without duplicates. */
  readonly refusals: ReadonlySet<string>;
}

const REPORTS_PER_SESSION = 20;

export function createReporter(mxPort: number): Reporter {
  const reported = new Set<string>();
  const refusals = new Set<string>();
  return {
    reported,
    refusals,
    report: async (messages) => {
      for (let n = 0; n < messages.length; n += REPORTS_PER_SESSION) {
        const client: SmtpClient = await smtpClient(mxPort);
        try {
          await client.say('EHLO reporter.example');
          for (const [recipient, envelopeSender] of messages.slice(n, n + REPORTS_PER_SESSION)) {
            const reply = await client.mail('', envelopeSender, dsn({ recipient }));
            if (reply.startsWith('250')) reported.add(recipient);
            else refusals.add(reply);
          }
          await client.say('QUIT');
        } finally {
          client.destroy();
        }
      }
    },
  };
}
