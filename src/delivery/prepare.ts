import type { Config } from '../config/schema.ts';
import { returnPathHost } from '../domains/names.ts';
import type { CopyDetails, MailKind, Tracking } from '../mail/content.ts';
import { sentMailOf } from '../mail/sent-mail.ts';
import type { Tokens } from '../mail/tokens.ts';
import type { DomainRow, Lane } from '../store/domains/domains.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { DeliveryJob, Signer } from './worker/protocol.ts';

/**
 * What a worker needs to know to compose and sign one copy: whose name it carries, where replies to the
 * envelope go, and the recipient's own links. Nothing here reads the queue or decides anything.
 */
export interface Prepare {
  (
    message: MessageRow,
    domain: DomainRow,
    content: DeliveryJob['content'],
    signers: Signer[],
  ): Pick<DeliveryJob, 'content' | 'copy' | 'envelope' | 'signers'>;
}

/** The host of a domain's return path: its own, or ours where SPF says so (contract §9). */
export function returnHost(config: Config, domain: Pick<DomainRow, 'name' | 'return_path'>): string {
  const wanted = config.delivery.returnPath === 'auto' ? domain.return_path : config.delivery.returnPath;
  return wanted === 'platform' ? config.hostname : customerReturnHost(domain);
}

function customerReturnHost(domain: Pick<DomainRow, 'name'>): string {
  return returnPathHost(domain.name);
}

/**
 * Where the links of a domain's mail lead: to its own host, where that was seen to lead to us, else to
 * `publicUrl`. The host comes with the scheme and the port of `publicUrl`, but without a path.
 */
export function linkBase(publicUrl: string, domain: Pick<DomainRow, 'tracking_host'>): string {
  if (domain.tracking_host === null) return publicUrl;
  const { protocol, port } = new URL(publicUrl);
  return `${protocol}//${domain.tracking_host}${port === '' ? '' : `:${port}`}`;
}

export interface PrepareSettings {
  config: Config;
  tokens: Tokens;
  /** `public.url`, its port resolved. */
  publicUrl: string;
}

export function createPrepare({ config, tokens, publicUrl }: PrepareSettings): Prepare {
  const trackingOf = (message: MessageRow, base: string): Tracking => ({
    linkPrefix: `${base}/c/`,
    clickKey: message.track_clicks === 1 ? tokens.clickKey : null,
    messageId: message.message_id,
    pixelUrl: message.track_opens === 1 ? `${base}/o/${tokens.openUrl.make(message.message_id)}.gif` : null,
  });

  return (message, domain, content, signers) => {
    const id = message.message_id;
    const mail = sentMailOf(message);
    const base = linkBase(publicUrl, domain);
    const copy: CopyDetails = {
      kind: kindOf(message),
      recipient: message.recipient,
      unsubscribeUrl: `${base}/u/${tokens.unsubscribeUrl.make(mail)}`,
      reportAbuseUrl: `${base}/r/${tokens.reportUrl.make(mail)}`,
      unsubscribeAddress: `${tokens.unsubscribe.make(id)}@${customerReturnHost(domain)}`,
      signedId: tokens.signedId.make(id),
      feedbackAddress: `${tokens.feedback.make(id)}@${customerReturnHost(domain)}`,
      feedbackId: feedbackIdOf(message),
      ...(message.track_clicks + message.track_opens > 0 ? { tracking: trackingOf(message, base) } : {}),
    };
    return {
      content,
      copy,
      envelope: {
        from: `${tokens.returnPath.make(id)}@${returnHost(config, domain)}`,
        to: message.recipient,
      },
      signers,
    };
  };
}

function kindOf({ use_case, essential }: MessageRow): MailKind {
  if (use_case === 'mk') return 'marketing';
  return essential === 1 ? 'essential' : 'transactional';
}

/** What the first field names is what the large receivers report complaint rates for. */
function feedbackIdOf({ campaign_id, subscription_group_id, account_id, use_case }: MessageRow): string {
  return `${campaign_id ?? subscription_group_id ?? use_case}:${account_id}:${use_case}:postrider`;
}

/** Finds the keys that sign a domain's mail in a lane; empty when there is none yet. */
export type SignersOf = (domain: DomainRow, lane: Lane) => Signer[];
