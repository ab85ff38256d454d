/** Minimal mails of each kind that other servers send to us. */
export interface DsnOptions {
  recipient?: string;
  action?: string;
  status?: string;
  diagnostic?: string;
  /** Fields of the returned message. */
  returned?: string;
}

export function dsn(input: DsnOptions = {}): string {
  const {
    recipient = 'ada@example.net',
    action = 'failed',
    status = '5.1.1',
    diagnostic = `smtp; 550 ${status} <${recipient}>: Recipient address rejected: User unknown in virtual mailbox table`,
    returned = 'Subject: Hello',
  } = input;
  return lines(`From: MAILER-DAEMON@mx.example.net (Mail Delivery System)
Subject: Undelivered Mail Returned to Sender
To: sender@example.com
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="B"

--B
Content-Type: text/plain

This is the mail system at host mx.example.net.
I'm sorry to have to inform you that your message could not be delivered.

--B
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.net
Arrival-Date: Thu, 15 Jan 2026 12:00:00 +0000 (UTC)

Final-Recipient: rfc822; ${recipient}
Action: ${action}
Status: ${status}
Diagnostic-Code: ${diagnostic}

--B
Content-Type: text/rfc822-headers

From: shop@example.com
To: ${recipient}
${returned}

--B--
`);
}

export function arf(feedbackType = 'abuse', returned = 'Subject: Hello'): string {
  return lines(`From: complaints@provider.example
Subject: FW: Hello
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="B"

--B
Content-Type: text/plain

This is an email abuse report.

--B
Content-Type: message/feedback-report

Feedback-Type: ${feedbackType}
User-Agent: SomeGenerator/1.0
Version: 1

--B
Content-Type: message/rfc822

From: shop@example.com
To: redacted
${returned}

Hello

--B--
`);
}

export const AUTO_REPLY = lines(`From: Ada <ada@example.net>
Subject: Out of office
Auto-Submitted: auto-replied

I am away until Monday.
`);

/** The acknowledgement of a help desk; `quoted`: lines of the message that it answers. */
export function acknowledgement(quoted: string): string {
  return lines(`From: Support <support@example.net>
Subject: [#4711] Re: Delivery notification: your order 10042
In-Reply-To: <x@example.com>
Auto-Submitted: auto-generated

We have received your request.

${quoted.replaceAll(/^/gm, '> ')}
`);
}

/** A read receipt (RFC 8098) that returns the message, whose subject has words of a bounce. */
export function readReceipt(disposition = 'displayed'): string {
  return lines(`From: Ada <ada@example.net>
Subject: Read: Delivery notification: your order 10042
MIME-Version: 1.0
Content-Type: multipart/report; report-type=disposition-notification; boundary="B"

--B
Content-Type: text/plain

Your message "Delivery notification: your order 10042" was ${disposition}.

--B
Content-Type: message/disposition-notification

Reporting-UA: mail.example.net; Mailer 1.0
Final-Recipient: rfc822;ada@example.net
Disposition: manual-action/MDN-sent-manually; ${disposition}

--B
Content-Type: message/rfc822

From: shop@example.com
To: ada@example.net
Subject: Delivery notification: your order 10042

Hello

--B--
`);
}

export const PLAIN_MAIL = lines(`From: Bob <bob@example.org>
Subject: A question

Who are you?
`);

export function aggregateReport(domain: string, id = '1'): string {
  return mailWith(
    `Report domain: ${domain} Submitter: receiver.example Report-ID: <${id}>`,
    'text/xml',
    `<?xml version="1.0"?><feedback><report_metadata><org_name>Receiver</org_name><email>reports@receiver.example</email><report_id>${id}</report_id>
<date_range><begin>1768348800</begin><end>1768435199</end></date_range></report_metadata>
<policy_published><domain>${domain}</domain><p>reject</p></policy_published>
${record('192.0.2.25', 7, 'none', 'pass', 'pass')}${record('192.0.2.25', 3, 'none', 'pass', 'pass')}
${record('203.0.113.9', 5, 'reject', 'fail', 'fail')}</feedback>`,
  );
}

function record(ip: string, count: number, disposition: string, dkim: string, spf: string): string {
  return `<record><row><source_ip>${ip}</source_ip><count>${count}</count><policy_evaluated>
<disposition>${disposition}</disposition><dkim>${dkim}</dkim><spf>${spf}</spf></policy_evaluated></row>
<identifiers><header_from>example.com</header_from></identifiers></record>`;
}

export function tlsReport(host: string, id = '1'): string {
  return mailWith(
    `Report Domain: ${host} Submitter: sender.example Report-ID: <${id}>`,
    'application/tlsrpt+json',
    JSON.stringify({
      'organization-name': 'Sender',
      'contact-info': 'reports@receiver.example',
      'report-id': id,
      'date-range': { 'start-datetime': '2026-01-14T00:00:00Z', 'end-datetime': '2026-01-14T23:59:59Z' },
      policies: [
        {
          policy: { 'policy-type': 'no-policy-found', 'policy-domain': host },
          summary: { 'total-successful-session-count': 90, 'total-failure-session-count': 4 },
          'failure-details': [
            {
              'result-type': 'certificate-expired',
              'failed-session-count': 4,
              'receiving-mx-hostname': 'mx.postrider.example',
            },
          ],
        },
      ],
    }),
  );
}

function mailWith(subject: string, type: string, attachment: string): string {
  return lines(`From: reports@receiver.example
Subject: ${subject}
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="B"

--B
Content-Type: ${type}
Content-Transfer-Encoding: base64

${Buffer.from(attachment).toString('base64').replace(/.{76}/g, '$&\n')}
--B--
`);
}

function lines(text: string): string {
  return text.replaceAll('\n', '\r\n');
}
