import { emailIdentifier } from '../../src/mail/identifier.ts';
import type { ReadyMessage } from '../../src/store/messages/queue.ts';

const NOW = Date.UTC(2026, 0, 15, 12);

/** A message that is ready to be sent, outside of any database. */
export function readyMessage(seq: number, columns: Partial<ReadyMessage> = {}): ReadyMessage {
  const recipient = columns.recipient ?? `a${seq}@one.test`;
  return {
    seq,
    message_id: `msg_1768478400000_${String(seq).padStart(12, '0')}`,
    account_id: 'acct_one',
    content_id: seq,
    use_case: 'tx',
    domain_id: 'domain_one',
    job_id: null,
    campaign_id: null,
    subscription_group_id: null,
    from_address: 'shop@example.com',
    recipient,
    recipient_hash: emailIdentifier(recipient),
    role: 'to',
    subject: 'Hello',
    status: 'queued',
    attempts: 0,
    simulated: 0,
    track_clicks: 0,
    track_opens: 0,
    essential: 0,
    created_at: NOW,
    updated_at: NOW,
    expires_at: NOW + 86_400_000,
    sent_at: null,
    final_at: null,
    destination: 'one.test',
    priority: 0,
    lease: null,
    due_at: NOW,
    secondary: 0,
    reroute: null,
    content_bytes: 1000,
    ...columns,
  };
}
