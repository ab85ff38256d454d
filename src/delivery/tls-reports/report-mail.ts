import { createHash } from 'node:crypto';
import { headerBytes } from '../../mail/compose.ts';
import { type DkimSigner, type SignableMessage, signDkim } from '../../mail/dkim.ts';
import { wrapBase64 } from '../../mail/encode.ts';
import type { OutgoingTlsReport, Submitter } from './report.ts';

/** The report as mail (RFC 8460 §5.3): `multipart/report` with a text and the gzipped document, DKIM-signed. */
export interface ReportMail {
  from: string;
  to: string;
  /** The fields and the empty line after them. */
  header: Buffer;
  /** CRLF lines. */
  body: Buffer;
}

export interface ReportMailInput {
  report: OutgoingTlsReport;
  submitter: Submitter;
  to: string;
  /** Signs with a key of `submitter.domain`. */
  signer: DkimSigner;
  /** Epoch ms. */
  now: number;
}

/**
 * Pure. The boundary and the Message-ID derive from the id of the report and `to`, so a mail that is sent again has the
 * same ones. From: `postmaster@` and the domain of the submitter.
 */
export function composeReportMail({ report, submitter, to, signer, now }: ReportMailInput): ReportMail {
  const from = `postmaster@${submitter.domain}`;
  const hash = createHash('sha256').update(`${report.id} ${to}`).digest('hex').slice(0, 32);
  const boundary = `=_tlsrpt_${hash}`;
  const header = [
    `Date: ${new Date(now).toUTCString().replace('GMT', '+0000')}`,
    `From: <${from}>`,
    `To: <${to}>`,
    `Subject: Report Domain: ${report.domain}\r\n Submitter: ${submitter.domain}\r\n Report-ID: <${report.id}>`,
    `Message-ID: <tlsrpt.${hash}@${submitter.domain}>`,
    `TLS-Report-Domain: ${report.domain}`,
    `TLS-Report-Submitter: ${submitter.domain}`,
    'Auto-Submitted: auto-generated',
    'MIME-Version: 1.0',
    `Content-Type: multipart/report; report-type="tlsrpt";\r\n boundary="${boundary}"`,
  ];
  const text = [
    `This is an aggregate TLS report (RFC 8460) of ${submitter.domain} about`,
    `${report.domain}. The report is attached.`,
    `Contact: ${submitter.contact}`,
  ];
  const body = Buffer.concat([
    lines(
      `--${boundary}`,
      'Content-Type: text/plain; charset=us-ascii',
      'Content-Transfer-Encoding: 7bit',
      '',
      ...text,
      '',
      `--${boundary}`,
      'Content-Type: application/tlsrpt+gzip',
      'Content-Transfer-Encoding: base64',
      `Content-Disposition: attachment;\r\n filename="${report.fileName}"`,
      '',
    ),
    wrapBase64(report.gzipped.toString('base64')),
    lines('', `--${boundary}--`),
  ]);
  const message: SignableMessage = { header, body };
  const signatures = signDkim(message, [signer], now);
  return { from, to, header: headerBytes(message, signatures), body };
}

function lines(...texts: string[]): Buffer {
  return Buffer.from(texts.map((text) => `${text}\r\n`).join(''));
}
