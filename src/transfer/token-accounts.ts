import { LRUCache } from 'lru-cache';
import type { TokenAccounts } from '../mail/tokens.ts';
import type { Context } from '../store/context.ts';

/** Opened keys in memory. */
const MAX_OPENED_KEYS = 2000;

/**
 * The keys of accounts that were imported from other installations. The table is read at every call, because another process may
 * import an account; it has at most one row for each account.
 */
export function createTokenAccounts({ tables, seal }: Pick<Context, 'tables' | 'seal'>): TokenAccounts {
  /** Opened keys by the sealed key. */
  const opened = new LRUCache<string, Buffer>({ max: MAX_OPENED_KEYS });

  return {
    importedKey: (tag) => {
      const row = tables.tokenKeys.byTag(tag);
      if (row === null) return null;
      const { account_id: accountId, key: sealed } = row;
      const name = sealed.toString('hex');
      const key = opened.get(name) ?? seal.open(sealed, tokenKeySealContext(accountId));
      opened.set(name, key);
      return { accountId, key };
    },
    accountOf: (messageId) =>
      (tables.messages.byId(messageId) ?? tables.movedMessages.byId(messageId))?.account_id ?? null,
  };
}

/** The context with which the key is sealed, in the database and in the file of an exported account. */
export function tokenKeySealContext(accountId: string): string {
  return `token-key:${accountId}`;
}
