import { createTransport } from 'nodemailer';
import { LOOPBACK, NAMES } from './names.ts';

/**
 * A bounce as a server sends it that took a mail and could not deliver it after all: a report (RFC 3464) from
 * the empty address to the mail's envelope sender, over a connection of its own.
 */
export interface Undeliverable {
  /** The envelope's. */
  from: string;
  to: string;
  mail: { messageId?: string | undefined };
}

/** Resolves when the server at `port` has taken it. */
export async function sendLateBounce(undeliverable: Undeliverable, port: number): Promise<void> {
  const transport = createTransport({
    host: LOOPBACK,
    port,
    name: NAMES.receiver,
    // As between mail servers: encrypted, whatever the certificate.
    tls: { rejectUnauthorized: false },
  });
  await transport.sendMail({
    envelope: { from: '', to: undeliverable.from },
    raw: report(undeliverable),
  });
}

function report({ from, to, mail }: Undeliverable): string {
  return `From: Mail Delivery System <mailer-daemon@${NAMES.receiver}>
To: ${from}
Subject: Undelivered mail
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="part"

--part
Content-Type: text/plain

Your mail to ${to} was taken, but the mailbox is gone.

--part
Content-Type: message/delivery-status

Reporting-MTA: dns; ${NAMES.receiver}

Final-Recipient: rfc822; ${to}
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 <${to}>: the mailbox is gone

--part
Content-Type: text/rfc822-headers

Message-ID: ${mail.messageId ?? ''}

--part--
`.replaceAll('\n', '\r\n');
}
