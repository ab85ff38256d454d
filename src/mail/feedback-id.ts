import type { Stream } from '../store/domains/domains.ts';

/*
 * Feedback-ID: large receivers report complaint rates by each of its fields, which must differ from each other. The last one is
 * the same for all mail of the installation.
 */

/** Of which mail the field is. */
export interface FeedbackSource {
  campaignId: string | null;
  subscriptionGroupId: string | null;
  accountId: string;
  stream: Stream;
}

/** The value of the field: `<campaign, group or ->:<account>:<tx or mk>:<sender>`. */
export function feedbackIdOf(
  { campaignId, subscriptionGroupId, accountId, stream }: FeedbackSource,
  hostname: string,
): string {
  const first = campaignId ?? subscriptionGroupId ?? NONE;
  const sender = senderIdOf(hostname);
  // The operator may choose the id of an account.
  const account = [first, stream, sender].includes(accountId) ? `${ACCOUNT_PREFIX}${accountId}` : accountId;
  return `${first}:${account}:${stream}:${sender}`;
}

/** What a field of this installation states, which anyone can write; null: it is not one. */
export interface StatedSource {
  /** Id of a campaign or group; null: neither. */
  id: string | null;
  /** The ids that the account may have. */
  accountIds: readonly string[];
  stream: Stream;
}

export function readFeedbackId(value: string, hostname: string): StatedSource | null {
  const [first = '', account = '', stream, sender, ...others] = value.trim().split(':');
  if (first === '' || account === '' || others.length > 0 || sender !== senderIdOf(hostname)) return null;
  if (stream !== 'tx' && stream !== 'mk') return null;
  const plain = account.startsWith(ACCOUNT_PREFIX) ? [account.slice(ACCOUNT_PREFIX.length)] : [];
  return { id: first === NONE ? null : first, accountIds: [account, ...plain], stream };
}

const NONE = '-';
const ACCOUNT_PREFIX = 'account-';

/** From 5 to 15 characters of the host name. */
function senderIdOf(hostname: string): string {
  return hostname.replaceAll('.', '').slice(0, 15).padEnd(5, '-');
}
