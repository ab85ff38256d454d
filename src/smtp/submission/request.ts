import { getDomain } from 'tldts';
import { invalid, isRefusal, type Refusal } from '../../core/refusal.ts';
import { domainOf, formatMailbox, parseMailbox } from '../../mail/address.ts';
import type { Mailbox } from '../../mail/content.ts';
import { parseIdempotencyKey } from '../../sending/idempotency.ts';
import type { SendRequest } from '../../sending/request.ts';
import type { UseCase } from '../../store/domains/domains.ts';
import type { SubmittedMail } from './submitted-mail.ts';

/**
 * A submitted mail as the request that it would be over HTTP. Who gets it stands in the envelope; the To and Cc
 * fields say in which role, and are written anew with those that are recipients of this transaction: a
 * recipient in neither is a blind copy.
 */
export interface SubmissionRequest {
  body: SendRequest;
  idempotencyKey: string | null;
}

/** Fields that ask for a marketing mail. */
const MARKETING_CONTROLS: ReadonlySet<string> = new Set(['campaign', 'group']);
const CONTROLS: ReadonlySet<string> = new Set([
  ...MARKETING_CONTROLS,
  'essential',
  'idempotency-key',
  'track',
]);

/** The stream that a mail is for when its key may send in both. */
export function wantedStream(mail: SubmittedMail): UseCase {
  return mail.controls.some(([name]) => MARKETING_CONTROLS.has(name)) ? 'mk' : 'tx';
}

/** `envelope`: every recipient, as the client named them. */
export function submissionRequest(
  mail: SubmittedMail,
  envelope: readonly string[],
  useCase: UseCase,
): SubmissionRequest | Refusal {
  const controls = readControls(mail, useCase);
  if (isRefusal(controls)) return controls;
  if (useCase === 'mk' && mail.attachments.length > 0)
    return invalid('attachments', 'are for transactional mail only');
  const [from, ...otherFrom] = mail.from;
  if (from === undefined) return invalid('From', 'is required');
  if (otherFrom.length > 0) return invalid('From', 'must hold one address');
  if (mail.replyTo.length > 1) return invalid('Reply-To', 'must hold one address');
  const [replyTo] = mail.replyTo;
  const { idempotencyKey, ...asked } = controls;
  const body: SendRequest = {
    ...asked,
    ...recipients(mail, envelope, useCase),
    from: formatMailbox(from),
    ...(replyTo === undefined ? {} : { replyTo: formatMailbox(replyTo) }),
    ...(mail.subject === '' ? {} : { subject: mail.subject }),
    ...(mail.text === null ? {} : { text: mail.text }),
    ...(mail.html === null ? {} : { html: mail.html }),
    headers: Object.fromEntries(mail.headers),
    attachments: mail.attachments,
    ...(mail.alternatives.length === 0 ? {} : { alternatives: mail.alternatives }),
    ...(isAligned(mail.messageId, from.address) ? { messageId: mail.messageId } : {}),
  };
  return { body, idempotencyKey };
}

/**
 * A Message-ID is kept when its domain and the From domain belong to one organization, so that replies and References
 * find it; another one would be a sign of forgery to mail filters.
 */
function isAligned(messageId: string | null, from: string): messageId is string {
  if (messageId === null) return false;
  const domain = domainOf(messageId).toLowerCase();
  const sender = comparableDomain(from);
  return (
    domain === sender || (organization(domain) !== null && organization(domain) === organization(sender))
  );
}

/** The registrable domain: customers of one host under a private suffix are strangers to each other. */
function organization(domain: string): string | null {
  return getDomain(domain, { allowPrivateDomains: true });
}

function comparableDomain(address: string): string {
  return domainOf(comparable(address));
}

type Roles = Pick<SendRequest, 'to' | 'cc' | 'bcc'>;

function recipients(mail: SubmittedMail, envelope: readonly string[], useCase: UseCase): Roles {
  // Marketing mail is addressed to each of its recipients alone.
  const shown = useCase === 'mk' ? { to: [...mail.to, ...mail.cc], cc: [] } : mail;
  const to: string[] = [];
  const cc: string[] = [];
  const bcc: string[] = [];
  for (const address of envelope) {
    const inTo = find(shown.to, address);
    const inCc = find(shown.cc, address);
    if (inTo) to.push(formatMailbox({ name: inTo.name, address }));
    else if (inCc) cc.push(formatMailbox({ name: inCc.name, address }));
    else (useCase === 'mk' ? to : bcc).push(address);
  }
  // A mail to others went ahead in a transaction of its own: here those of Cc are who it is to.
  const first = to.length > 0 ? { to, cc } : { to: cc, cc: [] };
  return {
    ...(first.to.length === 0 ? {} : { to: first.to }),
    ...(first.cc.length === 0 ? {} : { cc: first.cc }),
    ...(bcc.length === 0 ? {} : { bcc }),
  };
}

function find(mailboxes: readonly Mailbox[], address: string): Mailbox | undefined {
  const wanted = comparable(address);
  return mailboxes.find((mailbox) => comparable(mailbox.address) === wanted);
}

/** A domain may be written in either form. */
function comparable(address: string): string {
  const mailbox = parseMailbox(address);
  return (typeof mailbox === 'string' ? address : mailbox.address).toLowerCase();
}

type Asked = Pick<
  SendRequest,
  'campaignId' | 'subscriptionGroupId' | 'enableClickTracking' | 'enableOpenTracking' | 'essential'
> & { idempotencyKey: string | null };

function readControls({ controls }: SubmittedMail, useCase: UseCase): Asked | Refusal {
  const given = new Map(controls);
  const unknown = [...given.keys()].find((name) => !CONTROLS.has(name));
  if (unknown !== undefined) return invalid(`X-Postrider-${unknown}`, 'is no field that can be set');
  const misplaced = [...given.keys()].find((name) => useCase === 'tx' && MARKETING_CONTROLS.has(name));
  if (misplaced !== undefined) return invalid(`X-Postrider-${misplaced}`, 'is for marketing mail only');
  const essential = given.get('essential')?.trim().toLowerCase();
  if (essential !== undefined && essential !== 'yes' && essential !== 'no')
    return invalid('X-Postrider-Essential', 'must be "yes" or "no"');
  if (essential !== undefined && useCase === 'mk')
    return invalid('X-Postrider-Essential', 'is for transactional mail only');
  const track = readTrack(given.get('track') ?? '');
  if (isRefusal(track)) return track;
  const key = given.get('idempotency-key');
  const idempotencyKey = key === undefined ? null : parseIdempotencyKey(key);
  if (key !== undefined && idempotencyKey === null)
    return invalid('X-Postrider-Idempotency-Key', 'must be 1 to 255 printable ASCII characters');
  const campaignId = given.get('campaign');
  const subscriptionGroupId = given.get('group');
  return {
    ...track,
    idempotencyKey,
    ...(essential === 'yes' ? { essential: true } : {}),
    ...(campaignId === undefined ? {} : { campaignId }),
    ...(subscriptionGroupId === undefined ? {} : { subscriptionGroupId }),
  };
}

/** `X-Postrider-Track: opens, clicks`; `none` as when nothing is said. */
function readTrack(value: string): Pick<Asked, 'enableClickTracking' | 'enableOpenTracking'> | Refusal {
  const words = value
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((word) => word !== '' && word !== 'none');
  if (words.some((word) => word !== 'opens' && word !== 'clicks'))
    return invalid('X-Postrider-Track', 'must be "opens", "clicks", both, or "none"');
  return {
    ...(words.includes('clicks') ? { enableClickTracking: true } : {}),
    ...(words.includes('opens') ? { enableOpenTracking: true } : {}),
  };
}
