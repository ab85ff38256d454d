import { generateKeyPairSync } from 'node:crypto';
import { publicKeyRecordValue, signDkim } from '../../src/mail/dkim.ts';

/** A key for signing mails in tests, and the record that publishes it at `s1._domainkey.<domain>`. */
const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
export const SIGNING_RECORD = publicKeyRecordValue(key);

/** The mail under another From, signed for a domain. `at`: epoch ms of the signature. */
export function signMail(mail: string, from: string, domain: string, at = Date.now()): string {
  const changed = mail.replace(/^From: .*$/m, `From: Feedback <${from}>`);
  const [head = '', ...rest] = changed.split('\r\n\r\n');
  const message = { header: head.split('\r\n'), body: Buffer.from(rest.join('\r\n\r\n')) };
  return [...signDkim(message, [{ domain, selector: 's1', key }], at), changed].join('\r\n');
}
