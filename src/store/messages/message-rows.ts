import type { Database } from '../database/database.ts';
import type { Stream } from '../domains/domains.ts';
import { type BoundId, type IdNumbers, idNumbers, type StoredId } from '../rows/id-numbers.ts';
import { packJson, unpackJson } from '../rows/packed-json.ts';
import {
  ATTEMPT_LANE_CODES,
  idOfKey,
  keyOfId,
  keyOfRecipient,
  ROLE_CODES,
  recipientOfKey,
  STATUS_CODES,
  type StoredKey,
  USE_CASE_CODES,
} from '../rows/row-keys.ts';

export const MESSAGE_STATUSES = [
  'queued',
  'sending',
  'delivered',
  'deferred',
  'bounced',
  'failed',
  'complained',
  'cancelled',
] as const;
export type MessageStatus = (typeof MESSAGE_STATUSES)[number];
/** Statuses as callers see them: a queued message that waits for the time which its sender chose is `scheduled`. */
export const SHOWN_STATUSES = ['scheduled', ...MESSAGE_STATUSES] as const;
export type ShownStatus = (typeof SHOWN_STATUSES)[number];
export type Role = 'to' | 'cc' | 'bcc';

export interface MessageRow {
  seq: number;
  message_id: string;
  account_id: string;
  content_id: number;
  use_case: Stream;
  domain_id: string;
  job_id: string | null;
  campaign_id: string | null;
  subscription_group_id: string | null;
  from_address: string;
  recipient: string;
  recipient_hash: string;
  role: Role;
  subject: string;
  status: MessageStatus;
  attempts: number;
  simulated: 0 | 1;
  track_clicks: 0 | 1;
  track_opens: 0 | 1;
  /** 1: sent despite an opt-out of the recipient. In the marketing stream a test message, which needs no consent either. */
  essential: 0 | 1;
  created_at: number;
  updated_at: number;
  expires_at: number;
  sent_at: number | null;
  final_at: number | null;
  /** Tags and metadata (labels.ts), JSON; null: none. */
  labels: string | null;
}

export type NewMessage = Omit<
  MessageRow,
  'seq' | 'status' | 'attempts' | 'updated_at' | 'sent_at' | 'final_at'
>;

export interface AttemptRow {
  message_seq: number;
  attempt: number;
  at: number;
  lane: 'primary' | 'secondary' | 'simulator';
  /** JSON. */
  report: string;
}

/**
 * The columns of a stored message. Ids of resources are numbers, public ids and hashes are bytes, enumerations are codes. A
 * time that is not yet known is stored as the negative time of acceptance, so that a message keeps its size, and its
 * position in a page, from acceptance to delivery.
 */
export const MESSAGE_COLUMNS = `
  m.seq, m.message_key, m.account, m.content_id, m.use_case_code, m.domain, m.job_key, m.campaign, m.subscription_group,
  m.from_address, m.recipient, m.recipient_key, m.role_code, m.subject, m.status_code, m.attempts, m.simulated,
  m.track_clicks, m.track_opens, m.essential, m.created_at, m.updated_at, m.expires_at,
  iif(m.sent_time < 0, NULL, m.sent_time), iif(m.final_time < 0, NULL, m.final_time), m.labels`;

/** The condition that no further delivery attempt will be made. */
export const IS_FINAL = 'final_time >= 0';
export const FINAL_AT = 'iif(final_time < 0, NULL, final_time) AS final_at';

/**
 * A row of MESSAGE_COLUMNS as an array (raw mode of better-sqlite3), in their order. As an object of so many columns a row
 * would be a hash table: three times the time to read, and six times the memory for as long as the message is in use.
 */
export type StoredMessage = [
  seq: number,
  messageKey: StoredKey,
  account: StoredId,
  contentId: number,
  useCase: number,
  domain: StoredId,
  jobKey: StoredKey | null,
  campaign: StoredId | null,
  subscriptionGroup: StoredId | null,
  fromAddress: string,
  recipient: string,
  recipientKey: StoredKey,
  role: number,
  subject: string,
  status: number,
  attempts: number,
  simulated: 0 | 1,
  trackClicks: 0 | 1,
  trackOpens: 0 | 1,
  essential: 0 | 1,
  createdAt: number,
  updatedAt: number,
  expiresAt: number,
  sentAt: number | null,
  finalAt: number | null,
  labels: string | null,
];

/** Values of the columns of a new message. */
export interface NewStoredMessage {
  message_key: StoredKey;
  account: BoundId;
  content_id: number;
  use_case_code: number;
  domain: BoundId;
  job_key: StoredKey | null;
  campaign: BoundId | null;
  subscription_group: BoundId | null;
  from_address: string;
  recipient: string;
  recipient_key: StoredKey;
  role_code: number;
  subject: string;
  simulated: 0 | 1;
  track_clicks: 0 | 1;
  track_opens: 0 | 1;
  essential: 0 | 1;
  created_at: number;
  expires_at: number;
  status_code: number;
  sent_time: number;
  labels: string | null;
}

export const messageKey = (id: string): StoredKey => keyOfId('msg', id);
export const messageIdOf = (key: StoredKey): string => idOfKey('msg', key);
export const jobKey = (id: string): StoredKey => keyOfId('job', id);
export const jobIdOf = (key: StoredKey): string => idOfKey('job', key);

/**
 * Conversion between messages and rows of MESSAGE_COLUMNS. Ids of resources are resolved through `idNumbers`, which
 * reads the database when they are not cached.
 */
export function messageRows(db: Database) {
  const { account, domain, campaign, subscription_group: group } = idNumbers(db);
  return {
    /** Decodes a row; further columns of the statement follow those of the message. */
    toRow: (stored: readonly [...StoredMessage, ...unknown[]]): MessageRow => ({
      seq: stored[0],
      message_id: messageIdOf(stored[1]),
      account_id: account.id(stored[2]),
      content_id: stored[3],
      use_case: USE_CASE_CODES.value(stored[4]),
      domain_id: domain.id(stored[5]),
      job_id: stored[6] === null ? null : jobIdOf(stored[6]),
      campaign_id: idOrNull(campaign, stored[7]),
      subscription_group_id: idOrNull(group, stored[8]),
      from_address: stored[9],
      recipient: stored[10],
      recipient_hash: recipientOfKey(stored[11]),
      role: ROLE_CODES.value(stored[12]),
      subject: stored[13],
      status: STATUS_CODES.value(stored[14]),
      attempts: stored[15],
      simulated: stored[16],
      track_clicks: stored[17],
      track_opens: stored[18],
      essential: stored[19],
      created_at: stored[20],
      updated_at: stored[21],
      expires_at: stored[22],
      sent_at: stored[23],
      final_at: stored[24],
      labels: stored[25],
    }),
    /** Assigns numbers to ids. Only in a unit of work. `sentAt`: null for a message that waits. */
    toStored: (row: NewMessage, sentAt: number | null): NewStoredMessage => ({
      message_key: messageKey(row.message_id),
      account: account.assign(row.account_id),
      content_id: row.content_id,
      use_case_code: USE_CASE_CODES.code(row.use_case),
      domain: domain.assign(row.domain_id),
      job_key: row.job_id === null ? null : jobKey(row.job_id),
      campaign: row.campaign_id === null ? null : campaign.assign(row.campaign_id),
      subscription_group: row.subscription_group_id === null ? null : group.assign(row.subscription_group_id),
      from_address: row.from_address,
      recipient: row.recipient,
      recipient_key: keyOfRecipient(row.recipient_hash),
      role_code: ROLE_CODES.code(row.role),
      subject: row.subject,
      simulated: row.simulated,
      track_clicks: row.track_clicks,
      track_opens: row.track_opens,
      essential: row.essential,
      created_at: row.created_at,
      expires_at: row.expires_at,
      status_code: STATUS_CODES.code(sentAt === null ? 'queued' : 'sending'),
      sent_time: sentAt ?? -row.created_at,
      labels: row.labels,
    }),
  };
}

/** A row of `attempts`. */
export interface StoredAttempt {
  message_seq: number;
  attempt: number;
  at: number;
  lane_code: number;
  report: Buffer;
}

/** An attempt to be stored; its report must be representable as JSON. */
export type NewAttempt = Omit<AttemptRow, 'report'> & { report: object };

/** Packs the report with times relative to `at`; `toAttempt` needs the same `at`. */
export function toStoredAttempt({ message_seq, attempt, at, lane, report }: NewAttempt): StoredAttempt {
  return { message_seq, attempt, at, lane_code: ATTEMPT_LANE_CODES.code(lane), report: packJson(report, at) };
}

/** The report as JSON text. Throws when the code of the lane is unknown. */
export function toAttempt({ message_seq, attempt, at, lane_code, report }: StoredAttempt): AttemptRow {
  const lane = ATTEMPT_LANE_CODES.value(lane_code);
  return { message_seq, attempt, at, lane, report: unpackJson(report, at) };
}

/** The id that a nullable column stands for. Throws when its number was never assigned. */
export function idOrNull(numbers: IdNumbers, stored: StoredId | null): string | null {
  return stored === null ? null : numbers.id(stored);
}
