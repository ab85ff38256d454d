import { createTransport } from 'nodemailer';
import { LOOPBACK, NAMES } from './names.ts';

/** A message that the receiving server accepted but cannot deliver. */
export interface Undeliverable {
  /** Envelope sender. */
  from: string;
  to: string;
  mail: { messageId?: string | undefined };
}

/** Sends a bounce (RFC 3464) to the envelope sender; resolves when the server at `port` has accepted it. */
export async function sendDelayedBounce(undeliverable: Undeliverable, port: number): Promise<void> {
  const transport = createTransport({
    host: LOOPBACK,
    port,
    name: NAMES.receiver,
    // Opportunistic TLS, as between mail servers.
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

Your message to ${to} was accepted, but the mailbox no longer exists.

--part
Content-Type: message/delivery-status

Reporting-MTA: dns; ${NAMES.receiver}

Final-Recipient: rfc822; ${to}
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 <${to}>: the mailbox no longer exists

--part
Content-Type: text/rfc822-headers

Message-ID: ${mail.messageId ?? ''}

--part--
`.replaceAll('\n', '\r\n');
}
