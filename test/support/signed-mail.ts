import { signDkim } from '../../src/mail/dkim.ts';
import { fixedKey, fixedPublicKey } from './rsa-keys.ts';

/** The key that signs mails in tests, and the record that publishes it at `s1._domainkey.<domain>`. */
const key = fixedKey(0);
export const SIGNING_RECORD = `v=DKIM1; k=rsa; p=${fixedPublicKey(0)}`;

/** Returns the mail with another From, signed for a domain. `at`: epoch ms of the signature. */
export function signMail(mail: string, from: string, domain: string, at = Date.now()): string {
  const changed = mail.replace(/^From: .*$/m, `From: Feedback <${from}>`);
  const [head = '', ...rest] = changed.split('\r\n\r\n');
  const message = { header: head.split('\r\n'), body: Buffer.from(rest.join('\r\n\r\n')) };
  return [...signDkim(message, [{ domain, selector: 's1', key }], at), changed].join('\r\n');
}
