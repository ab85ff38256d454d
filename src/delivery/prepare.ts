import type { Config } from '../config/schema.ts';
import type { CopyDetails } from '../mail/content.ts';
import type { Tokens } from '../mail/tokens.ts';
import type { DomainRow, Lane } from '../store/domains.ts';
import type { MessageRow } from '../store/messages.ts';
import type { DeliveryJob, Signer } from './worker/protocol.ts';

/**
 * What a worker needs to know to compose and sign one copy: whose name it carries, where replies to the
 * envelope go, and the recipient's own links. Nothing here reads the queue or decides anything.
 */
export interface Prepare {
  (
    message: MessageRow,
    domain: DomainRow,
    content: string,
    signers: Signer[],
  ): Pick<DeliveryJob, 'content' | 'copy' | 'envelope' | 'signers'>;
}

/** The host of a domain's return path: its own `return-a.`, or ours where SPF says so (contract §9). */
export function returnHost(config: Config, domain: Pick<DomainRow, 'name' | 'return_path'>): string {
  const wanted = config.delivery.returnPath === 'auto' ? domain.return_path : config.delivery.returnPath;
  return wanted === 'platform' ? config.hostname : customerReturnHost(domain);
}

function customerReturnHost(domain: Pick<DomainRow, 'name'>): string {
  return `return-a.${domain.name}`;
}

export function createPrepare(settings: { config: Config; tokens: Tokens }): Prepare {
  const { config, tokens } = settings;
  const base = config.public.url;
  return (message, domain, content, signers) => {
    const id = message.message_id;
    const copy: CopyDetails = {
      recipient: message.recipient,
      unsubscribeUrl: `${base}/u/${tokens.unsubscribeUrl.make(id)}`,
      reportAbuseUrl: `${base}/r/${tokens.reportUrl.make(id)}`,
      unsubscribeAddress: `${tokens.unsubscribe.make(id)}@${customerReturnHost(domain)}`,
      signedId: tokens.signedId.make(id),
      feedbackAddress: `${tokens.feedback.make(id)}@${customerReturnHost(domain)}`,
      feedbackId: `${message.campaign_id ?? 'none'}:${message.account_id}:${message.use_case}:postrider`,
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

/** Finds the keys that sign a domain's mail in a lane; empty when there is none yet. */
export type SignersOf = (domain: DomainRow, lane: Lane) => Signer[];
