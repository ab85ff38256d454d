import type { Database } from '../database/database.ts';
import { type BoundId, idNumbers, type StoredId } from '../rows/id-numbers.ts';
import { packJson, unpackJson } from '../rows/packed-json.ts';
import {
  codeOfKind,
  idOfEvent,
  keyOfEvent,
  kindOfCode,
  recipientOfKey,
  type StoredKey,
  USE_CASE_CODES,
} from '../rows/row-keys.ts';
import { idOrNull, jobIdOf, type MessageRow, messageIdOf } from './message-rows.ts';

/** An event. The table is append-only and ordered by `seq`; only `events/record` inserts into it. */
export interface NewEvent {
  event_id: string;
  account_id: string;
  kind: string;
  at: number;
  message_seq: number | null;
  domain_id: string | null;
  /** JSON of the fields of this kind, without the common ones. */
  data: string;
}

/** An event with the fields of its message, null where it has none. */
export type EventRow = NewEvent & { seq: number } & {
  [Column in keyof Pick<
    MessageRow,
    | 'message_id'
    | 'job_id'
    | 'campaign_id'
    | 'subscription_group_id'
    | 'use_case'
    | 'from_address'
    | 'recipient'
    | 'recipient_hash'
    | 'subject'
    | 'simulated'
    | 'labels'
  >]: MessageRow[Column] | null;
};

/**
 * Events are stored like messages (message-rows.ts). The fields of a message's event are packed JSON, or NULL where there
 * are none; those of an event without a message are JSON, because they are searched.
 */
export const EVENT_COLUMNS = `
  e.seq, e.event_key AS event_id, e.account AS account_id, e.kind_code AS kind, e.at, e.message_seq,
  coalesce(m.domain, e.domain) AS domain_id, e.data, m.message_key AS message_id, m.job_key AS job_id,
  m.campaign AS campaign_id, m.subscription_group AS subscription_group_id, m.use_case_code AS use_case,
  m.from_address, m.recipient, m.recipient_key AS recipient_hash, m.subject, m.simulated, m.labels`;

/** The columns that are stored in another form. */
type Decoded = Pick<
  EventRow,
  | 'event_id'
  | 'account_id'
  | 'kind'
  | 'domain_id'
  | 'data'
  | 'message_id'
  | 'job_id'
  | 'campaign_id'
  | 'subscription_group_id'
  | 'use_case'
  | 'recipient_hash'
>;

/** A row of EVENT_COLUMNS. */
export type StoredEvent = Omit<EventRow, keyof Decoded> & {
  event_id: StoredKey;
  account_id: StoredId;
  kind: number | string;
  domain_id: StoredId | null;
  data: StoredData;
  message_id: StoredKey | null;
  job_id: StoredKey | null;
  campaign_id: StoredId | null;
  subscription_group_id: StoredId | null;
  use_case: number | null;
  recipient_hash: StoredKey | null;
};

export type StoredData = Buffer | string | null;

/** Values of the columns of a new event. */
export interface NewStoredEvent {
  event_key: StoredKey;
  account: BoundId;
  kind_code: bigint | string;
  at: number;
  message_seq: number | null;
  domain: BoundId | null;
  data: StoredData;
}

const NO_FIELDS = '{}';

/** `data`: JSON text. */
export function toStoredData(
  data: string,
  { at, message_seq }: Pick<NewEvent, 'at' | 'message_seq'>,
): StoredData {
  if (message_seq === null) return data;
  return data === NO_FIELDS ? null : packJson(JSON.parse(data), at);
}

/** The fields as JSON text; NULL stands for `{}`. `at`: the time of the event, epoch ms, with which it was packed. */
export function dataOf(stored: StoredData, at: number): string {
  if (stored === null) return NO_FIELDS;
  return typeof stored === 'string' ? stored : unpackJson(stored, at);
}

/**
 * Conversion between events and rows of EVENT_COLUMNS. Ids of resources are resolved through `idNumbers`, which reads
 * the database when they are not cached.
 */
export function eventRows(db: Database) {
  const { account, domain, campaign, subscription_group: group } = idNumbers(db);
  return {
    /** Decodes a row in place. */
    toRow: (stored: StoredEvent): EventRow => {
      const decoded: Decoded = {
        event_id: idOfEvent(stored.event_id, stored.at),
        account_id: account.id(stored.account_id),
        kind: kindOfCode(stored.kind),
        domain_id: idOrNull(domain, stored.domain_id),
        data: dataOf(stored.data, stored.at),
        message_id: stored.message_id === null ? null : messageIdOf(stored.message_id),
        job_id: stored.job_id === null ? null : jobIdOf(stored.job_id),
        campaign_id: idOrNull(campaign, stored.campaign_id),
        subscription_group_id: idOrNull(group, stored.subscription_group_id),
        use_case: stored.use_case === null ? null : USE_CASE_CODES.value(stored.use_case),
        recipient_hash: stored.recipient_hash === null ? null : recipientOfKey(stored.recipient_hash),
      };
      return Object.assign<Omit<StoredEvent, keyof Decoded>, Decoded>(stored, decoded);
    },
    /** Assigns numbers to ids. Only in a unit of work. */
    toStored: (row: NewEvent): NewStoredEvent => ({
      event_key: keyOfEvent(row.event_id, row.at),
      account: account.assign(row.account_id),
      kind_code: codeOfKind(row.kind),
      at: row.at,
      message_seq: row.message_seq,
      domain: row.domain_id === null ? null : domain.assign(row.domain_id),
      data: toStoredData(row.data, row),
    }),
  };
}
