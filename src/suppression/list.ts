import { addOptOut, apiOptOut } from '../audience/opt-out.ts';
import { iso } from '../core/clock.ts';
import { invalid, type Refusal, refuse } from '../core/refusal.ts';
import type { OnSuppressionChange, Recorder } from '../events/record.ts';
import { parseMailbox } from '../mail/address.ts';
import { emailIdentifier, isEmailIdentifier, recipientIdentifier } from '../mail/identifier.ts';
import type { Context } from '../store/context.ts';
import type { Page } from '../store/rows/page.ts';
import type {
  SuppressionFilter,
  SuppressionReason,
  SuppressionRemovalRow,
  SuppressionRow,
  SuppressionStream,
} from '../store/suppressions.ts';
import type { MayAdd, Tables } from '../store/tables.ts';

/*
 * The suppression list as the account manages it. Suppressions after bounces and complaints are added by
 * `events/effects`, opt-outs by `unsubscribe`.
 */

/** A suppression to add. */
export interface SuppressionInput {
  email: string;
  reason: SuppressionReason;
  stream: SuppressionStream;
  /** When the other service recorded it, epoch ms; default: now. */
  createdAt?: number;
}

/** All suppressions of an address or identifier, or those of one stream or reason. */
export interface SuppressionTarget {
  email: string;
  stream?: SuppressionStream;
  reason?: SuppressionReason;
}

/** Who removes suppressions, and why. */
export interface SuppressionRemoval {
  /** The API key, the person of the console, or `command line`. */
  by: string;
  note: string | null;
}

/**
 * Keeps no state; the API and the command line use it. `add` refuses an invalid address, `remove` a target without
 * suppressions (`NOT_FOUND`). `onSuppressionChange` is called in the unit of work of the change.
 */
export function createSuppressionList(
  { tables, reader, writer, clock }: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock'>,
  {
    recorder,
    onSuppressionChange,
    mayAdd,
  }: {
    recorder: Recorder;
    onSuppressionChange?: OnSuppressionChange;
    /** The limit on the number of an account's suppressions. Default: none. */
    mayAdd?: MayAdd;
  },
) {
  return {
    /** Newest first. */
    list: (filter: SuppressionFilter): Promise<Page<SuppressionRow>> =>
      reader.table(filter.accountId, 'suppressions', 'list', filter),
    /**
     * Does not change an existing suppression with this address, stream and reason. Records an opt-out as an event, and
     * one of marketing mail in the consent history. `by`: the API key, the person of the console, or `command line`.
     */
    add: async (
      accountId: string,
      { email, reason, stream, createdAt }: SuppressionInput,
      by: string,
    ): Promise<{ row: SuppressionRow; created: boolean } | Refusal> => {
      const target = targetOf(email);
      if (typeof target === 'string') return invalid('email', target);
      const { address, hash } = target;
      return writer.run((tx): { row: SuppressionRow; created: boolean } | Refusal => {
        // An opt-out is never refused.
        const isKnown = tx.suppressions
          .of(accountId, hash)
          .some((one) => one.stream === stream && one.reason === reason);
        const full = isKnown || reason === 'unsubscribe' ? null : (mayAdd?.(tx, accountId) ?? null);
        if (full !== null) return full;
        const at = Math.min(createdAt ?? Number.POSITIVE_INFINITY, clock.now());
        const suppression = {
          account_id: accountId,
          recipient_hash: hash,
          stream,
          email: address,
          message_seq: null,
          created_at: at,
        };
        const created =
          reason === 'unsubscribe'
            ? addOptOut(tx, suppression, apiOptOut(null, { by, ipAddress: null, userAgent: null, at }))
            : tx.suppressions.add({ ...suppression, reason });
        const row = tx.suppressions
          .of(accountId, hash)
          .find((one) => one.stream === stream && one.reason === reason);
        if (row === undefined) throw new Error('the suppression was not stored');
        if (created) {
          onSuppressionChange?.(tx, accountId, hash);
          if (reason === 'unsubscribe') recordOptOut(tx, row, address ?? hash);
        }
        return { row, created };
      }, accountId);
    },
    /** The newest removals of an address or identifier, newest first. */
    removals: (accountId: string, email: string): SuppressionRemovalRow[] =>
      tables.suppressionRemovals.of(accountId, recipientIdentifier(email)),
    /**
     * Returns the removed rows, and records each removal; refused when there are none. The bounce count of the address
     * is reset.
     */
    remove: (
      accountId: string,
      { email, stream, reason }: SuppressionTarget,
      { by, note }: SuppressionRemoval,
    ): Promise<SuppressionRow[] | Refusal> =>
      writer.run((tx): SuppressionRow[] | Refusal => {
        const hash = recipientIdentifier(email);
        const rows = tx.suppressions
          .of(accountId, hash)
          .filter((row) => (stream ?? row.stream) === row.stream && (reason ?? row.reason) === row.reason);
        if (rows.length === 0) return refuse('NOT_FOUND', `There is no matching suppression of ${email}`);
        for (const row of rows) {
          tx.suppressions.remove(row.seq);
          tx.suppressionRemovals.record(row, { note, by, at: clock.now() });
        }
        tx.suppressions.clearStrikes(accountId, hash);
        onSuppressionChange?.(tx, accountId, hash);
        return rows;
      }, accountId),
  };

  function recordOptOut(tx: Tables, row: SuppressionRow, recipient: string): void {
    recorder.optedOut(tx, {
      accountId: row.account_id,
      domainId: null,
      fields: { method: 'api', stream: row.stream, recipient, contactIdentifier: row.recipient_hash },
    });
  }
}

export type SuppressionList = ReturnType<typeof createSuppressionList>;

/** An address with its identifier, or an identifier alone; a string: why it is neither. */
function targetOf(text: string): { address: string | null; hash: string } | string {
  if (isEmailIdentifier(text)) return { address: null, hash: recipientIdentifier(text) };
  const mailbox = parseMailbox(text);
  return typeof mailbox === 'string'
    ? mailbox
    : { address: mailbox.address, hash: emailIdentifier(mailbox.address) };
}

/** `contactIdentifier`: the hash of the address (`email_<md5>`), which remains after the person was erased. */
export function presentSuppression(row: SuppressionRow) {
  return {
    email: row.email,
    contactIdentifier: row.recipient_hash,
    reason: row.reason,
    stream: row.stream,
    createdAt: iso(row.created_at),
  };
}
