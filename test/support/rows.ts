import { DAY } from '../../src/core/clock.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { checkColumns, type DomainRow } from '../../src/store/domains/domains.ts';
import type { NewMessage } from '../../src/store/messages/messages.ts';
import type { QueuePriority } from '../../src/store/messages/queue.ts';
import type { Tables } from '../../src/store/tables.ts';

/* Rows of accounts, domains and queued messages, for tests and for benchmarks that fill a database. */

export function insertAccount(tables: Tables, accountId: string, now: number): void {
  tables.accounts.insert({
    account_id: accountId,
    name: accountId,
    status: 'active',
    company_name: 'Example Ltd',
    company_address: JSON.stringify({ line1: '1 Main St', city: 'Town', postalCode: '12345', country: 'GB' }),
    abuse_email: null,
    moved_at: null,
    logo_url: null,
    created_at: now,
    updated_at: now,
  });
  tables.domainGroups.insert({
    group_id: `dgroup_${accountId}`,
    account_id: accountId,
    name: 'Default',
    description: null,
    color: null,
    icon: null,
    is_default: 1,
    created_at: now,
    updated_at: now,
  });
}

type DomainColumns = Partial<DomainRow> & Pick<DomainRow, 'account_id' | 'domain_id' | 'name'>;

/** Inserts a verified domain; `columns` override the defaults. */
export function insertDomain(tables: Tables, columns: DomainColumns, now: number): DomainRow {
  const row: DomainRow = {
    group_id: `dgroup_${columns.account_id}`,
    use_case: 'tx',
    region: 'local',
    status: 'SUCCESS',
    ...checkColumns(1),
    return_path: 'customer',
    tracking_domain: null,
    tracking_host: null,
    track_opens: 0,
    track_clicks: 0,
    alt_domain_id: `alt_${columns.domain_id}`,
    alt_status: 'PENDING',
    alt_provisioned: 0,
    alt_dkim_enabled: 0,
    alt_spf_configured: 0,
    alt_dmarc_configured: 0,
    last_checked_at: null,
    next_check_at: now,
    check_count: 0,
    failing_since: null,
    created_at: now,
    updated_at: now,
    ...columns,
  };
  tables.domains.insert(row);
  return row;
}

/** Inserts a verified domain into the domain group of an account that the API created; no check of it is due. */
export function insertDomainOf(
  { tables }: { tables: Tables },
  { accountId }: { accountId: string },
  columns: Omit<DomainColumns, 'account_id'>,
): void {
  const [group] = tables.domainGroups.list(accountId);
  if (group === undefined) throw new Error(`account ${accountId} has no domain group`);
  const now = Date.now();
  const own = { account_id: accountId, group_id: group.group_id, next_check_at: now + DAY };
  insertDomain(tables, { ...own, ...columns }, now);
}

/** The id of message `number`, created at `now`. */
export function messageIdOf(number: number, now: number): string {
  return `msg_${now}_${String(number).padStart(12, '0')}`;
}

/** The columns of a message of `acct_one` and `domain_one`; `columns` override the defaults. */
export function newMessage(
  now: number,
  columns: Partial<NewMessage> & Pick<NewMessage, 'message_id' | 'recipient' | 'content_id'>,
): NewMessage {
  return {
    account_id: 'acct_one',
    use_case: 'tx',
    domain_id: 'domain_one',
    job_id: null,
    campaign_id: null,
    subscription_group_id: null,
    from_address: 'shop@example.com',
    recipient_hash: emailIdentifier(columns.recipient),
    role: 'to',
    subject: 'Hello',
    simulated: 0,
    track_clicks: 0,
    track_opens: 0,
    essential: 0,
    labels: null,
    created_at: now,
    expires_at: now + 2 * DAY,
    ...columns,
  };
}

/** Inserts a message and its queue row; returns its seq. */
export function insertQueued(
  tables: Tables,
  message: NewMessage,
  {
    priority,
    dueAt,
    now,
    scheduled = false,
  }: { priority: QueuePriority; dueAt: number; now: number; scheduled?: boolean },
): number {
  const seq = tables.messages.insert(message);
  tables.queue.insert({
    seq,
    priority,
    account_id: message.account_id,
    domain_id: message.domain_id,
    destination: message.recipient.slice(message.recipient.lastIndexOf('@') + 1),
    due_at: dueAt,
    ready: dueAt <= now ? 1 : 0,
    lease: null,
    campaign_seq: null,
    scheduled_at: scheduled ? dueAt : null,
  });
  return seq;
}
