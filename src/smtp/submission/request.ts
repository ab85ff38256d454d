import { getDomain } from 'tldts';
import { invalid, isRefusal, type Refusal, shortened } from '../../core/refusal.ts';
import { domainOf, formatMailbox, parseMailbox } from '../../mail/address.ts';
import type { Mailbox } from '../../mail/content.ts';
import type { AcceptRequest } from '../../sending/accept.ts';
import { parseIdempotencyKey } from '../../sending/idempotency.ts';
import type { DisplayedRecipients, SendRequest } from '../../sending/request.ts';
import type { Stream } from '../../store/domains/domains.ts';
import { MAX_RECIPIENTS } from '../listener.ts';
import type { SubmittedMail } from './submitted-mail.ts';

/**
 * Converts a submitted mail to the request that it would be over HTTP. The envelope has the recipients, the To and Cc
 * fields their roles; a recipient in neither field is a blind copy. The fields of transactional mail also keep the
 * addresses that this transaction has no mail for: a mail server in front may have delivered to them, and replies to all
 * need them. Each copy of marketing mail names its recipient only.
 */
export interface SubmissionRequest extends Pick<AcceptRequest, 'body' | 'literalBraces' | 'maxRecipients'> {
  idempotencyKey: string | null;
}

/** Control fields of marketing mail. */
const MARKETING_CONTROLS: ReadonlySet<string> = new Set(['campaign', 'group']);
const CONTROLS: ReadonlySet<string> = new Set([
  ...MARKETING_CONTROLS,
  'essential',
  'idempotency-key',
  'tag',
  'track',
]);

/** The stream of a mail whose key may send in both. */
export function requestedStream(mail: SubmittedMail): Stream {
  return mail.controls.some(([name]) => MARKETING_CONTROLS.has(name)) ? 'mk' : 'tx';
}

/** `envelope`: all recipients, as the client sent them. */
export function submissionRequest(
  mail: SubmittedMail,
  envelope: readonly string[],
  useCase: Stream,
): SubmissionRequest | Refusal {
  const controls = readControls(mail, useCase);
  if (isRefusal(controls)) return controls;
  if (useCase === 'mk' && mail.attachments.length > 0)
    return invalid('attachments', 'are for transactional mail only');
  const [from, ...otherFrom] = mail.from;
  if (from === undefined) return invalid('From', 'is required');
  if (otherFrom.length > 0) return invalid('From', 'must have one address');
  const { idempotencyKey, ...requested } = controls;
  const body: SendRequest = {
    ...requested,
    ...recipientsByRole(mail, envelope, useCase),
    from: formatMailbox(from),
    ...(mail.replyTo.length === 0 ? {} : { replyTo: mail.replyTo.map(formatMailbox) }),
    // Subject and body may be missing (RFC 5322 §3.6): scanners send files alone. A send without HTML needs a text that is
    // not empty.
    subject: mail.subject,
    ...(mail.text === null ? {} : { text: mail.text === '' && mail.html === null ? '\n' : mail.text }),
    ...(mail.html === null ? {} : { html: mail.html }),
    headers: Object.fromEntries(mail.headers),
    attachments: mail.attachments,
    ...(mail.alternatives.length === 0 ? {} : { alternatives: mail.alternatives }),
    ...(isAligned(mail.messageId, from.address) ? { messageId: mail.messageId } : {}),
  };
  return { body, idempotencyKey, literalBraces: true, maxRecipients: MAX_RECIPIENTS };
}

/** The recipients that a mail names itself, each once: those of To, Cc and Bcc. Refuses what is not an address. */
export function namedRecipients(mail: SubmittedMail): string[] | Refusal {
  const recipients = new Map<string, string>();
  for (const [field, mailboxes] of [
    ['To', mail.to],
    ['Cc', mail.cc],
    ['Bcc', mail.bcc],
  ] as const)
    for (const { name, address } of mailboxes) {
      const mailbox = parseMailbox(address);
      if (typeof mailbox === 'string') return invalid(field, `${shortened(address || name)}: ${mailbox}`);
      const key = comparable(address);
      if (!recipients.has(key)) recipients.set(key, address);
    }
  return recipients.size === 0
    ? invalid('to', 'is required: To, Cc and Bcc of the mail name nobody')
    : [...recipients.values()];
}

/**
 * A Message-ID is preserved when its domain and the From domain belong to one organization, so that replies and References
 * match it; mail filters treat an unaligned one as a sign of forgery.
 */
function isAligned(messageId: string | null, from: string): messageId is string {
  if (messageId === null) return false;
  const domain = domainOf(messageId).toLowerCase();
  const sender = comparableDomain(from);
  return (
    domain === sender || (organization(domain) !== null && organization(domain) === organization(sender))
  );
}

/** The registrable domain; customers of one host under a private suffix are different organizations. */
function organization(domain: string): string | null {
  return getDomain(domain, { allowPrivateDomains: true });
}

function comparableDomain(address: string): string {
  return domainOf(comparable(address));
}

type Roles = Pick<SendRequest, 'to' | 'cc' | 'bcc' | 'displayed'>;

function recipientsByRole(mail: SubmittedMail, envelope: readonly string[], useCase: Stream): Roles {
  const named = namedIn(mail);
  const recipients = new Set<string>();
  const to: string[] = [];
  const cc: string[] = [];
  const bcc: string[] = [];
  for (const address of envelope) {
    const key = comparable(address);
    recipients.add(key);
    const found = named.get(key);
    const mailbox = found === undefined ? address : formatMailbox({ name: found.name, address });
    // Each recipient of marketing mail gets a message with only that address.
    const role = useCase === 'mk' ? to : found === undefined ? bcc : found.field === 'to' ? to : cc;
    role.push(mailbox);
  }
  // If the recipients of To were in another transaction, those of Cc become To here.
  const first = to.length > 0 ? { to, cc } : { to: cc, cc: [] };
  const isOnlyInCc = mail.to.length === 0 && mail.cc.length > 0;
  const areSame = !isOnlyInCc && [...named.keys()].every((key) => recipients.has(key));
  return {
    ...(first.to.length === 0 ? {} : { to: first.to }),
    ...(first.cc.length === 0 ? {} : { cc: first.cc }),
    ...(bcc.length === 0 ? {} : { bcc }),
    ...(useCase === 'mk' || areSame ? {} : { displayed: displayedIn(mail) }),
  };
}

/** The mailboxes of To and Cc by comparable address; an address in both is one of To. */
function namedIn({ to, cc }: SubmittedMail): Map<string, { field: 'to' | 'cc'; name: string }> {
  const named = new Map<string, { field: 'to' | 'cc'; name: string }>();
  for (const [field, mailboxes] of [
    ['to', to],
    ['cc', cc],
  ] as const)
    for (const { name, address } of mailboxes) {
      const key = comparable(address);
      if (!named.has(key)) named.set(key, { field, name });
    }
  return named;
}

/** Without what is not an address: a field with it would be rejected or misread. */
function displayedIn({ to, cc }: SubmittedMail): DisplayedRecipients {
  const valid = (mailboxes: readonly Mailbox[]) =>
    mailboxes.flatMap(({ name, address }) => {
      const mailbox = parseMailbox(address);
      return typeof mailbox === 'string' ? [] : [{ name, address: mailbox.address }];
    });
  return { to: valid(to), cc: valid(cc) };
}

/** Lower case, the domain as A-labels. */
function comparable(address: string): string {
  const mailbox = parseMailbox(address);
  return (typeof mailbox === 'string' ? address : mailbox.address).toLowerCase();
}

type Controls = Pick<
  SendRequest,
  | 'campaignId'
  | 'subscriptionGroupId'
  | 'enableClickTracking'
  | 'enableOpenTracking'
  | 'essential'
  | 'tags'
  | 'metadata'
> & { idempotencyKey: string | null };

function readControls({ controls }: SubmittedMail, useCase: Stream): Controls | Refusal {
  const fields = new Map(controls);
  const unknown = [...fields.keys()].find((name) => !CONTROLS.has(name) && !isMetadata(name));
  if (unknown !== undefined) return invalid(`X-Postrider-${unknown}`, 'is not a control field');
  const misplaced = [...fields.keys()].find((name) => useCase === 'tx' && MARKETING_CONTROLS.has(name));
  if (misplaced !== undefined) return invalid(`X-Postrider-${misplaced}`, 'is for marketing mail only');
  const essential = fields.get('essential')?.trim().toLowerCase();
  if (essential !== undefined && essential !== 'yes' && essential !== 'no')
    return invalid('X-Postrider-Essential', 'must be "yes" or "no"');
  if (essential !== undefined && useCase === 'mk')
    return invalid('X-Postrider-Essential', 'is for transactional mail only');
  const track = readTrack(fields.get('track'));
  if (isRefusal(track)) return track;
  const key = fields.get('idempotency-key');
  const idempotencyKey = key === undefined ? null : parseIdempotencyKey(key);
  if (key !== undefined && idempotencyKey === null)
    return invalid('X-Postrider-Idempotency-Key', 'must be 1 to 255 printable ASCII characters');
  const campaignId = fields.get('campaign');
  const tags = controls.flatMap(([name, value]) => (name === 'tag' ? readTags(value) : []));
  const metadata = controls.filter(([name]) => isMetadata(name));
  const subscriptionGroupId = fields.get('group');
  return {
    ...track,
    idempotencyKey,
    ...(essential === 'yes' ? { essential: true } : {}),
    ...(tags.length === 0 ? {} : { tags }),
    ...(metadata.length === 0
      ? {}
      : {
          metadata: Object.fromEntries(metadata.map(([name, value]) => [name.slice(METADATA.length), value])),
        }),
    ...(campaignId === undefined ? {} : { campaignId }),
    ...(subscriptionGroupId === undefined ? {} : { subscriptionGroupId }),
  };
}

/** `X-Postrider-Metadata-<name>`: the names are in lower case, because those of header fields have no case. */
const METADATA = 'metadata-';

function isMetadata(name: string): boolean {
  return name.startsWith(METADATA) && name.length > METADATA.length;
}

/** `X-Postrider-Tag: one, two`; the field may be repeated. */
function readTags(value: string): string[] {
  return value
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');
}

/** `X-Postrider-Track: opens, clicks`, or `none`: tracks exactly this, whatever the domain tracks. */
function readTrack(
  value: string | undefined,
): Pick<Controls, 'enableClickTracking' | 'enableOpenTracking'> | Refusal {
  if (value === undefined) return {};
  const words = value
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((word) => word !== '' && word !== 'none');
  if (words.some((word) => word !== 'opens' && word !== 'clicks'))
    return invalid('X-Postrider-Track', 'must be "opens", "clicks", both, or "none"');
  return {
    enableClickTracking: words.includes('clicks'),
    enableOpenTracking: words.includes('opens'),
  };
}
