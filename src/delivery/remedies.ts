import { readProgramFile } from '../config/program-file.ts';
import type { BounceClass } from '../mail/classify/classify.ts';
import type { SmtpReply } from '../mail/reply.ts';

interface RemedyFile {
  /** By the classification of a reply. */
  replies: Record<BounceClass, string>;
  /** By the conclusion of the attempt. */
  local: Readonly<Record<string, string>>;
  /** Errors of connections whose cause is this machine, by words of the error. */
  errors: readonly { words: string; remedy: string }[];
}

/** What an operator can do. Sound: a test compares the file with the classes and conclusions. */
const REMEDIES = readProgramFile('remedies.toml') as RemedyFile;

/** What to do about a failure on this side; null: it is none. `error`: of the deciding session. */
export function localRemedy(conclusion: string, error: string | null = null): string | null {
  const byError = REMEDIES.errors.find(({ words }) => error?.includes(words))?.remedy;
  return byError ?? REMEDIES.local[conclusion] ?? null;
}

const NAMES = /\bptr\b|reverse|rdns|fcrdns|iprev|helo\b|ehlo\b|hostname/i;
const LINK = /https?:\/\//i;
const CONTACT = /@|contact/i;

/** What a reply means for the operator, and what to do about it. */
export function replyRemedy(
  bounceClass: BounceClass,
  reply: Pick<SmtpReply, 'enhanced' | 'text'> | null,
): string {
  const { enhanced = null, text = '' } = reply ?? {};
  if (bounceClass === 'reputation-block' && (enhanced?.endsWith('.7.25') === true || NAMES.test(text)))
    return 'The source address has no reverse DNS name that leads back to it, or the EHLO name does not match. "postrider doctor" names the record: the provider of the address sets it.';
  if (bounceClass === 'policy-block') {
    if (LINK.test(text)) return `${REMEDIES.replies[bounceClass]} Follow the link in the reply.`;
    return `${REMEDIES.replies[bounceClass]} ${CONTACT.test(text) ? 'Write to the contact in the reply' : 'Write to the postmaster of the destination'}, and quote the reply.`;
  }
  if (bounceClass === 'tls-failed') {
    const policy = policyOf(text);
    if (policy !== null)
      return `${policy} does not permit this connection, so that the message waits. Its owner has to correct the policy or the certificate; mail is not sent without what it requires.`;
  }
  return REMEDIES.replies[bounceClass];
}

/** The published policy that a reply of this side names, to begin a sentence; null: none. */
export function policyOf(text: string): string | null {
  const sts = /MTA-STS policy of ([^\s,)]+)/.exec(text)?.[1];
  if (sts !== undefined) return `The MTA-STS policy of ${sts}`;
  const tlsa = /TLSA records of ([^\s,):]+)/.exec(text)?.[1];
  return tlsa === undefined ? null : `DANE (the TLSA records of ${tlsa})`;
}
