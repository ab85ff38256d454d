import { type Clock, iso } from '../core/clock.ts';
import { invalid, type Refusal, refuse } from '../core/refusal.ts';
import type { OnSuppressionChange, Recorder } from '../events/record.ts';
import { parseMailbox } from '../mail/address.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import { createLocalReader, type Reader } from '../store/readers/reads.ts';
import type { Page } from '../store/rows/page.ts';
import type {
  SuppressionFilter,
  SuppressionReason,
  SuppressionRow,
  SuppressionStream,
} from '../store/suppressions.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';

/**
 * The account's own hand on its suppressions: whom it may not write to, set and lifted. What bounces,
 * complaints and opt-outs add by themselves is in `events/effects`; whether a send may go, in `suppression`.
 */
export interface SuppressionWish {
  email: string;
  reason: SuppressionReason;
  stream: SuppressionStream;
}

/** An address or its identifier; everything of it, or only one stream or reason. */
export interface LiftWish {
  email: string;
  stream?: SuppressionStream;
  reason?: SuppressionReason;
}

export interface SuppressionList {
  /** Newest first. */
  list(filter: SuppressionFilter): Promise<Page<SuppressionRow>>;
  /** An equal one that is there already stays as it is. An opt-out is an event, too. */
  add(accountId: string, wish: SuppressionWish): Promise<{ row: SuppressionRow; created: boolean } | Refusal>;
  /** Returns what was lifted; a refusal when there was nothing. Counted bounces start again at none. */
  lift(accountId: string, wish: LiftWish): Promise<SuppressionRow[] | Refusal>;
}

export interface SuppressionHouse {
  tables: Tables;
  /** Where lists are read; default: this thread. */
  reader?: Reader;
  writer: Writer;
  clock: Clock;
  recorder: Recorder;
  onSuppressionChange?: OnSuppressionChange;
}

export function createSuppressionList(house: SuppressionHouse): SuppressionList {
  const { tables, writer, clock, recorder, onSuppressionChange } = house;
  const reader = house.reader ?? createLocalReader(tables);
  return {
    list: (filter) => reader.table(filter.accountId, 'suppressions', 'list', filter),
    add: async (accountId, { email, reason, stream }) => {
      const mailbox = parseMailbox(email);
      if (typeof mailbox === 'string') return invalid('email', mailbox);
      const hash = emailIdentifier(mailbox.address);
      return writer.run((all) => {
        const created = all.suppressions.add({
          account_id: accountId,
          recipient_hash: hash,
          stream,
          reason,
          email: mailbox.address,
          message_seq: null,
          created_at: clock.now(),
        });
        const row = all.suppressions
          .of(accountId, hash)
          .find((one) => one.stream === stream && one.reason === reason);
        if (row === undefined) throw new Error('the suppression was not stored');
        if (created) {
          onSuppressionChange?.(all, accountId, hash);
          if (reason === 'unsubscribe') tellOptOut(all, row, mailbox.address);
        }
        return { row, created };
      });
    },
    lift: (accountId, { email, stream, reason }) =>
      writer.run((all): SuppressionRow[] | Refusal => {
        const hash = identifierOf(email);
        const lifted = all.suppressions
          .of(accountId, hash)
          .filter((row) => (stream ?? row.stream) === row.stream && (reason ?? row.reason) === row.reason);
        if (lifted.length === 0) return refuse('NOT_FOUND', `${email} is not suppressed in this way`);
        for (const { seq } of lifted) all.suppressions.remove(seq);
        all.suppressions.clearStrikes(accountId, hash);
        onSuppressionChange?.(all, accountId, hash);
        return lifted;
      }),
  };

  function tellOptOut(all: Tables, row: SuppressionRow, recipient: string): void {
    recorder.optedOut(all, {
      accountId: row.account_id,
      domainId: null,
      fields: { method: 'api', stream: row.stream, recipient, contactIdentifier: row.recipient_hash },
    });
  }
}

/** An address, plain or as its identifier: of an erased person only that is left. */
export function identifierOf(email: string): string {
  return /^email_[0-9a-f]{32}$/.test(email) ? email : emailIdentifier(plainAddress(email));
}

/** What is no address is looked for as it is, and not found. */
function plainAddress(text: string): string {
  const mailbox = parseMailbox(text);
  return typeof mailbox === 'string' ? text : mailbox.address;
}

export interface ShownSuppression {
  /** Null after the person was erased. */
  email: string | null;
  contactIdentifier: string;
  reason: SuppressionReason;
  stream: SuppressionStream;
  createdAt: string;
}

/** A suppression as callers see it. */
export function shownSuppression(row: SuppressionRow): ShownSuppression {
  return {
    email: row.email,
    contactIdentifier: row.recipient_hash,
    reason: row.reason,
    stream: row.stream,
    createdAt: iso(row.created_at),
  };
}
