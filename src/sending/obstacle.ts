import { marketingIneligibility } from '../audience/eligibility.ts';
import type { EventFields, Obstacle } from '../events/event-types.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import { suppressedFor } from '../suppression/suppression.ts';

/** Repeats the checks of the acceptance. Returns null if the message can be sent. */
export function sendingObstacle(tables: Tables, message: MessageRow): Obstacle | null {
  const campaign = campaignObstacle(tables, message);
  if (campaign !== null) return campaign;
  const stop = tables.domains.sendingStop(message.domain_id);
  if (stop !== null) return { kind: 'hold_until_expiry', reason: stop };
  if (message.simulated === 1) return null;
  if (message.use_case === 'mk' && message.essential === 0) {
    const { account_id, recipient_hash, subscription_group_id } = message;
    const ended = marketingIneligibility(tables, account_id, recipient_hash, subscription_group_id);
    return ended === null ? null : suppressed({ reasonCode: 'CONSENT_WITHDRAWN', reason: ended.status });
  }
  const found = suppressedFor(tables, message.account_id, message.recipient_hash, {
    useCase: message.use_case,
    essential: message.essential === 1,
  });
  return found === null ? null : suppressed({ reasonCode: found.code, reason: found.row.reason });
}

/** A message of a campaign that is sent to a group depends on the state of the campaign. */
function campaignObstacle(tables: Tables, { campaign_id, job_id }: MessageRow): Obstacle | null {
  if (campaign_id === null || job_id === null) return null;
  const status = tables.campaignSends.statusOfJob(job_id);
  if (status === 'paused') return { kind: 'hold' };
  return status === 'cancelled' ? { kind: 'email_failed', fields: { reason: 'cancelled' } } : null;
}

function suppressed(fields: EventFields['email_suppressed']): Obstacle {
  return { kind: 'email_suppressed', fields };
}
