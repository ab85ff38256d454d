import type { Rebuild, SqlValue, TableCopy } from '../migrate/rebuild-plan.ts';
import { packJson } from '../rows/packed-json.ts';
import {
  ATTEMPT_LANE_CODES,
  type Codes,
  codeOfKind,
  keyOfEvent,
  keyOfId,
  keyOfRecipient,
  ROLE_CODES,
  STATUS_CODES,
  USE_CASE_CODES,
} from '../rows/row-keys.ts';

/**
 * Messages, events, attempts and the queue in their compact form (message-rows.ts, event-rows.ts): 660 bytes per
 * message instead of 1,500. Accounts, domains, campaigns and groups that exist get numbers; a row that refers to a
 * deleted one keeps its id.
 */
export const COMPACT_ROWS: Omit<Rebuild, 'tables' | 'indexes'> = {
  version: 21,
  name: 'compact-rows',
  from: 16,
  autoVacuum: 'incremental',
  copies: () => ({
    account_numbers: numbersOf('accounts', 'account_id'),
    domain_numbers: numbersOf('domains', 'domain_id'),
    campaign_numbers: numbersOf('campaigns', 'campaign_id'),
    subscription_group_numbers: numbersOf('subscription_groups', 'subscription_group_id'),
    // The daemon fills the search index in the background.
    contacts: { columns: { search_text: 'NULL' } },
    messages: {
      columns: {
        message_key: "id_key('msg', o.message_id)",
        account: numberOf('account', 'account_id'),
        use_case_code: 'use_case_code(o.use_case)',
        domain: numberOf('domain', 'domain_id'),
        job_key: "id_key('job', o.job_id)",
        campaign: numberOf('campaign', 'campaign_id'),
        subscription_group: numberOf('subscription_group', 'subscription_group_id'),
        recipient_key: 'recipient_key(o.recipient_hash)',
        role_code: 'role_code(o.role)',
        status_code: 'status_code(o.status)',
        sent_time: 'coalesce(o.sent_at, -o.created_at)',
        final_time: 'coalesce(o.final_at, -o.created_at)',
      },
      dropped: [
        'message_id',
        'account_id',
        'use_case',
        'domain_id',
        'job_id',
        'campaign_id',
        'subscription_group_id',
        'recipient_hash',
        'role',
        'status',
        'sent_at',
        'final_at',
      ],
    },
    attempts: {
      columns: { lane_code: 'lane_code(o.lane)', report: 'packed_json(o.report, o.at)' },
      dropped: ['lane'],
    },
    queue: {
      columns: { account: numberOf('account', 'account_id'), domain: numberOf('domain', 'domain_id') },
      dropped: ['account_id', 'domain_id'],
    },
    events: {
      columns: {
        event_key: 'event_key(o.event_id, o.at)',
        account: numberOf('account', 'account_id'),
        kind_code: 'kind_code(o.kind)',
        domain: numberOf('domain', 'domain_id'),
        data: "CASE WHEN o.message_seq IS NULL THEN o.data WHEN o.data <> '{}' THEN packed_json(o.data, o.at) END",
      },
      dropped: ['event_id', 'account_id', 'kind', 'domain_id'],
    },
  }),
  functions: {
    id_key: (kind, id) => (id === null ? null : keyOfId(text(kind), text(id))),
    event_key: (id, at) => keyOfEvent(text(id), Number(at)),
    recipient_key: (identifier) => keyOfRecipient(text(identifier)),
    packed_json: (json, at) => packJson(JSON.parse(text(json)), Number(at)),
    use_case_code: codesFor(USE_CASE_CODES),
    role_code: codesFor(ROLE_CODES),
    status_code: codesFor(STATUS_CODES),
    lane_code: codesFor(ATTEMPT_LANE_CODES),
    kind_code: (kind) => codeOfKind(text(kind)),
  },
};

/** Numbers for the ids of a table, in the order of its rows. */
function numbersOf(table: string, id: string): TableCopy {
  return {
    from: table,
    key: ['rowid'],
    into: ['id'],
    select: (range) => `SELECT o.${id} FROM old.${table} AS o WHERE ${range} ORDER BY o.rowid`,
    count: `SELECT count(*) FROM old.${table}`,
  };
}

function numberOf(kind: string, column: string): string {
  return `coalesce((SELECT number FROM main.${kind}_numbers WHERE id = o.${column}), o.${column})`;
}

function codesFor(codes: Codes<string>): (value: SqlValue) => SqlValue {
  return (value) => codes.code(text(value));
}

function text(value: SqlValue): string {
  if (typeof value === 'string') return value;
  throw new Error(`expected a string, found ${typeof value}`);
}
