import * as z from 'zod';
import { iso } from '../core/clock.ts';
import { recordOf } from '../core/record-of.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { AccountRow, PostalAddress } from '../store/accounts.ts';
import type { Context } from '../store/context.ts';
import type { Tables } from '../store/tables.ts';
import { type AccountScope, createKeyRow } from './keys.ts';
import { type LimitChanges, putLimits } from './limits.ts';

/**
 * Accounts, the tenants of the service. An account is never deleted, only disabled, because its mail, events and
 * suppressions must stay available.
 */
export type Account = ReturnType<typeof accountOf>;

export interface CreatedAccount {
  account: Account;
  /** The secrets of its first keys, returned once. */
  keys: Record<AccountScope, string>;
}

/** Why a request of an account is refused that was exported to another installation. */
export const ACCOUNT_MOVES = 'This account is moving to another machine: try again';

const FIRST_KEYS = ['setup', 'marketing', 'transactional'] as const satisfies AccountScope[];

/**
 * Stateless: reads come from `tables`, and each change is one unit of work. The secrets of the first keys are only in
 * the result of `create`.
 */
export function createAccounts({
  tables,
  writer,
  clock,
  ids,
}: Pick<Context, 'tables' | 'writer' | 'clock' | 'ids'>) {
  function change(
    accountId: string,
    edit: (row: AccountRow, tables: Tables) => Partial<AccountRow> | Refusal,
  ): Promise<Account | Refusal> {
    return writer.run((tables): Account | Refusal => {
      const row = tables.accounts.get(accountId);
      if (row === null) return refuse('ACCOUNT_NOT_FOUND', `There is no account ${accountId}`);
      const edited = edit(row, tables);
      if (isRefusal(edited)) return edited;
      const changed = { ...row, ...edited, updated_at: clock.now() };
      tables.accounts.update(changed);
      return accountOf(changed);
    }, accountId);
  }

  return {
    /** Creates the account, its default domain group and a key for each scope in one unit of work. */
    create: async (input: AccountInput, limits?: LimitChanges): Promise<CreatedAccount | Refusal> => {
      const at = clock.now();
      const row: AccountRow = {
        account_id: input.accountId ?? ids.account(),
        name: input.name,
        status: 'active',
        company_name: input.companyName ?? null,
        company_address: jsonOrNull(input.companyAddress),
        abuse_email: null,
        logo_url: null,
        created_at: at,
        updated_at: at,
        moved_at: null,
      };
      const newKey = (scope: AccountScope) =>
        createKeyRow(
          { ids, clock },
          {
            accountId: row.account_id,
            name: scope,
            scopes: [scope],
            allowIps: [],
            allowFrom: [],
            allowEssential: true,
            strictCompliance: false,
            livemode: true,
            seal: null,
          },
        );
      const keys = recordOf(FIRST_KEYS, newKey);
      return writer.run((tables): CreatedAccount | Refusal => {
        if (tables.accounts.get(row.account_id) !== null) {
          return refuse('INVALID_STATE', `Account ${row.account_id} already exists`);
        }
        tables.accounts.insert(row);
        tables.domainGroups.insert({
          group_id: ids.make('dgroup'),
          account_id: row.account_id,
          name: 'Default',
          description: null,
          color: null,
          icon: null,
          is_default: 1,
          created_at: at,
          updated_at: at,
        });
        if (limits !== undefined) putLimits(tables, row.account_id, limits);
        for (const key of Object.values(keys)) tables.apiKeys.insert(key.row);
        return {
          account: accountOf(row),
          keys: recordOf(FIRST_KEYS, (scope) => keys[scope].created.secret),
        };
      });
    },
    get: (accountId: string): Account | null => {
      const row = tables.accounts.get(accountId);
      return row === null ? null : accountOf(row);
    },
    /** Oldest first. */
    list: (): Account[] => tables.accounts.list().map(accountOf),
    /** Refuses an unknown account (`ACCOUNT_NOT_FOUND`). */
    update: (accountId: string, changes: AccountPatch, limits?: LimitChanges): Promise<Account | Refusal> =>
      change(accountId, (_, tables) => {
        if (limits !== undefined) putLimits(tables, accountId, limits);
        return columnsOf(changes);
      }),
    /** Idempotent. Refuses to enable an account whose import is not complete (`INVALID_STATE`). */
    setStatus: (accountId: string, status: Account['status']): Promise<Account | Refusal> =>
      change(accountId, (_, tables) =>
        status === 'active' && tables.accountImports.get(accountId) !== null
          ? refuse(
              'INVALID_STATE',
              `The import of account ${accountId} is not complete: run "postrider account import" with its file again`,
            )
          : { status, ...(status === 'active' ? { moved_at: null } : {}) },
      ),
    /**
     * Disables an account that is exported: its requests get 503, and its queue is sent. Idempotent, until it is enabled.
     */
    move: (accountId: string): Promise<Account | Refusal> =>
      change(accountId, ({ moved_at: movedAt }) => ({
        status: 'disabled',
        moved_at: movedAt ?? clock.now(),
      })),
  };
}

export type Accounts = ReturnType<typeof createAccounts>;

/** The columns of the fields in `changes`. */
function columnsOf(changes: AccountPatch): Partial<AccountRow> {
  const columns: Partial<AccountRow> = {};
  if (changes.name !== undefined) columns.name = changes.name;
  if (changes.companyName !== undefined) columns.company_name = changes.companyName;
  if (changes.companyAddress !== undefined) {
    columns.company_address = jsonOrNull(changes.companyAddress);
  }
  if (changes.abuseEmail !== undefined) columns.abuse_email = changes.abuseEmail;
  if (changes.logoUrl !== undefined) columns.logo_url = changes.logoUrl;
  return columns;
}

function jsonOrNull(value: object | null | undefined): string | null {
  return value === undefined || value === null ? null : JSON.stringify(value);
}

function accountOf(row: AccountRow) {
  return {
    accountId: row.account_id,
    name: row.name,
    status: row.status,
    companyName: row.company_name,
    // Sound: only this module writes the column.
    companyAddress: row.company_address === null ? null : (JSON.parse(row.company_address) as PostalAddress),
    abuseEmail: row.abuse_email,
    logoUrl: row.logo_url,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  };
}

/** A field of an account is inserted into mail: it is one line, without control characters. */
function line(max: number, min = 1) {
  return z
    .string()
    .trim()
    .min(min)
    .max(max)
    .regex(/^\P{Cc}*$/u, 'must be one line without control characters');
}

const addressSchema = z
  .object({
    line1: line(200).describe('Street and number, or P.O. box.'),
    line2: line(200).optional(),
    city: line(100),
    region: line(100).optional().describe('State, province, canton.'),
    postalCode: line(20, 0).describe('Empty in a country that has none.'),
    country: line(100),
  })
  .meta({ id: 'PostalAddressInput' });

/** Changes of an account: an absent field is unchanged, null removes the value. */
export const accountPatchSchema = z.object({
  name: line(200).optional(),
  companyName: line(200).nullable().optional().describe('As it appears in the footer of every mail.'),
  companyAddress: addressSchema.nullable().optional(),
  abuseEmail: z.email().max(254).nullable().optional().describe('Where reports of abuse are sent.'),
  logoUrl: z
    .url({ protocol: /^https?$/, error: 'must be an http or https address' })
    .max(2000)
    .nullable()
    .optional(),
});

export type AccountPatch = z.output<typeof accountPatchSchema>;

export const accountInputSchema = z.object({
  name: line(200),
  companyName: line(200).optional(),
  companyAddress: addressSchema.optional(),
  /** Default: a generated id. */
  accountId: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/,
      'must be 1 to 64 letters, digits, "_" and "-", the first a letter or digit',
    )
    .optional(),
});

type AccountInput = z.output<typeof accountInputSchema>;
