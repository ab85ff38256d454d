import type { Config } from '../config/schema.ts';
import { returnPathHost } from '../domains/names.ts';
import type { CopyDetails, MailKind, Tracking } from '../mail/content.ts';
import type { DkimSigner } from '../mail/dkim.ts';
import { sentMailOf } from '../mail/sent-mail.ts';
import type { AccountTokens, Tokens } from '../mail/tokens.ts';
import type { DomainRow, Lane } from '../store/domains/domains.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { DeliveryJob } from './worker/protocol.ts';

/** The columns of a domain that determine its mail. */
type SendingDomain = Pick<DomainRow, 'name' | 'return_path' | 'tracking_host'>;

/**
 * Collects what a worker needs to compose and sign one copy: the sender, the return path, the recipient's links. Pure:
 * it reads no table and decides nothing.
 */
export type Prepare = (
  message: MessageRow,
  domain: SendingDomain,
  content: DeliveryJob['content'],
  signers: DkimSigner[],
) => Pick<DeliveryJob, 'content' | 'copy' | 'envelope' | 'signers'>;

/** The host of a domain's return path: its `return-a.` host, or the platform's, by configuration and SPF. */
export function returnHost(config: Config, domain: Pick<DomainRow, 'name' | 'return_path'>): string {
  const configured = config.delivery.returnPath === 'auto' ? domain.return_path : config.delivery.returnPath;
  return configured === 'platform' ? config.hostname : customerReturnHost(domain);
}

function customerReturnHost(domain: Pick<DomainRow, 'name'>): string {
  return returnPathHost(domain.name);
}

/**
 * The base URL of the links in a domain's mail: the domain's tracking host if it was verified to resolve to this server,
 * else `publicUrl`. The tracking host gets the scheme and the port of `publicUrl`, but no path.
 */
export function linkBase(publicUrl: string, domain: Pick<DomainRow, 'tracking_host'>): string {
  if (domain.tracking_host === null) return publicUrl;
  const { protocol, port } = new URL(publicUrl);
  return `${protocol}//${domain.tracking_host}${port === '' ? '' : `:${port}`}`;
}

export interface PrepareDeps {
  config: Config;
  tokens: Pick<Tokens, 'of'>;
  /** `public.url` with the actual port. */
  publicUrl: string;
}

/** The values that differ between copies: the links and addresses with the tokens of one message. */
export type DescribeCopy = (message: MessageRow, domain: SendingDomain) => CopyDetails;

/**
 * Reads no table. `tracking` is absent from copies of messages that track neither opens nor clicks. `publicUrl` is the
 * base of links unless the domain has a verified tracking host.
 */
export function createDescribeCopy({ config, tokens, publicUrl }: PrepareDeps): DescribeCopy {
  const trackingOf = (message: MessageRow, signed: AccountTokens, base: string): Tracking => ({
    linkPrefix: `${base}/c/`,
    clickSigner: message.track_clicks === 1 ? signed.click : null,
    messageId: message.message_id,
    pixelUrl: message.track_opens === 1 ? `${base}/o/${signed.openUrl(message.message_id)}.gif` : null,
  });

  return (message, domain) => {
    const id = message.message_id;
    const mail = sentMailOf(message);
    const signed = tokens.of(message.account_id);
    const base = linkBase(publicUrl, domain);
    return {
      kind: kindOf(message),
      recipient: message.recipient,
      unsubscribeUrl: `${base}/u/${signed.unsubscribeUrl(mail)}`,
      reportAbuseUrl: `${base}/r/${signed.reportUrl(mail)}`,
      unsubscribeAddress: `${signed.unsubscribe(id)}@${customerReturnHost(domain)}`,
      signedId: signed.signedId(id),
      feedbackAddress: `${signed.feedback(id)}@${customerReturnHost(domain)}`,
      feedbackId: feedbackIdOf(message, config.hostname),
      ...(message.track_clicks + message.track_opens > 0
        ? { tracking: trackingOf(message, signed, base) }
        : {}),
    };
  };
}

/**
 * The envelope sender has the message's signed token as its local part; its host is that of `returnHost`, with the
 * settings at the time of the call.
 */
export function createPrepare(deps: PrepareDeps): Prepare {
  const { config, tokens } = deps;
  const describeCopy = createDescribeCopy(deps);
  return (message, domain, content, signers) => ({
    content,
    copy: describeCopy(message, domain),
    envelope: {
      from: `${tokens.of(message.account_id).returnPath(message.message_id)}@${returnHost(config, domain)}`,
      to: message.recipient,
    },
    signers,
  });
}

function kindOf({ use_case, essential }: MessageRow): MailKind {
  if (use_case === 'mk') return 'marketing';
  return essential === 1 ? 'essential' : 'transactional';
}

/**
 * The value of Feedback-ID: large receivers report complaint rates by each of its fields, which must differ from each
 * other. The last one is the same for all mail of the installation.
 */
function feedbackIdOf(
  { campaign_id, subscription_group_id, account_id, use_case }: MessageRow,
  hostname: string,
): string {
  const first = campaign_id ?? subscription_group_id ?? '-';
  const sender = senderIdOf(hostname);
  // The operator may choose the id of an account.
  const account = [first, use_case, sender].includes(account_id) ? `account-${account_id}` : account_id;
  return `${first}:${account}:${use_case}:${sender}`;
}

/** From 5 to 15 characters of the host name. */
function senderIdOf(hostname: string): string {
  return hostname.replaceAll('.', '').slice(0, 15).padEnd(5, '-');
}

/** The keys that sign a domain's mail in a lane; empty when there are none yet. */
export type SignersOf = (domain: DomainRow, lane: Lane) => DkimSigner[];
