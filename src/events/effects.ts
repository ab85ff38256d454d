import { DAY } from '../core/clock.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';

/**
 * What follows from a bounce or a complaint: which recipients the account may no longer write to. Only what is
 * about the recipient suppresses: a sender on a blocklist must not erase its own list.
 */
export interface BounceFacts {
  bounceType: 'hard' | 'soft' | 'block' | null;
  scope: 'recipient' | 'message' | 'sender' | 'site';
  /** now: proven. second-time: only when it comes again on another day. */
  suppress: 'now' | 'second-time' | 'never';
  /** False for a report that anybody with the message's headers could have sent. */
  verified?: boolean;
}

export interface SuppressionEffect {
  suppressed: boolean;
}

const SOFT_LIMIT = 5;
const SOFT_WINDOW = 14 * DAY;
/** How long an unproven hard bounce waits for its second. */
const UNPROVEN_WINDOW = 90 * DAY;

export function suppressAfterBounce(
  tables: Tables,
  message: MessageRow,
  bounce: BounceFacts,
  at: number,
): SuppressionEffect {
  const { account_id: account, recipient_hash: hash } = message;
  const suppress = (reason: 'hard_bounce' | 'soft_bounces') => {
    tables.suppressions.add({
      account_id: account,
      recipient_hash: hash,
      stream: 'all',
      reason,
      email: addressOf(message),
      message_seq: message.seq,
      created_at: at,
    });
    return { suppressed: true };
  };
  if (bounce.scope !== 'recipient') return { suppressed: false };
  // Read now rather than cleared at each delivery: a server that takes everything and sends a report later
  // would otherwise clear every strike with its next 250.
  const since = (window: number) => Math.max(at - window, tables.messages.lastDelivery(account, hash) ?? 0);
  if (bounce.bounceType === 'hard' && bounce.suppress === 'now') return suppress('hard_bounce');
  if (bounce.bounceType === 'hard' && bounce.suppress === 'second-time') {
    const earlier = tables.suppressions.strikesSince(account, hash, 'unproven', since(UNPROVEN_WINDOW));
    tables.suppressions.addStrike(account, hash, 'unproven', at);
    return earlier.some((strike) => dayOf(strike) !== dayOf(at))
      ? suppress('hard_bounce')
      : { suppressed: false };
  }
  if (bounce.bounceType === 'soft') {
    // Unverified ones count once a day: five forged reports in a row are one strike.
    const sameDay = tables.suppressions.strikesSince(account, hash, 'soft', dayOf(at) * DAY);
    if (bounce.verified === false && sameDay.length > 0) return { suppressed: false };
    tables.suppressions.addStrike(account, hash, 'soft', at);
    const strikes = tables.suppressions.strikesSince(account, hash, 'soft', since(SOFT_WINDOW));
    return strikes.length >= SOFT_LIMIT ? suppress('soft_bounces') : { suppressed: false };
  }
  return { suppressed: false };
}

/**
 * A complaint ends marketing. A verified one about transactional mail ends that, too; one that anybody could
 * have made with a copy of the mail does not: a report without the receiver's signature, or our own page, which
 * is one click away for everybody the mail was passed on to.
 */
export function suppressAfterComplaint(
  tables: Tables,
  message: MessageRow,
  fields: Record<string, unknown>,
  at: number,
): SuppressionEffect {
  const endsAll = message.use_case === 'tx' && fields['source'] === 'arf' && fields['verified'] === true;
  tables.suppressions.add({
    account_id: message.account_id,
    recipient_hash: message.recipient_hash,
    stream: endsAll ? 'all' : 'mk',
    reason: 'complaint',
    email: addressOf(message),
    message_seq: message.seq,
    created_at: at,
  });
  return { suppressed: true };
}

/** Null when the person was erased, whose identifier stands in its place. */
function addressOf({ recipient }: MessageRow): string | null {
  return recipient.includes('@') ? recipient : null;
}

function dayOf(at: number): number {
  return Math.floor(at / DAY);
}
