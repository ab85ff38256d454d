import { leaveGroup } from '../audience/opt-out.ts';
import type { Context } from '../store/context.ts';
import type { Tables } from '../store/tables.ts';
import { type AccountFile, FileFault, type FileItem } from './file.ts';

/** Records in one unit of work. */
const PORTION_RECORDS = 20;

/**
 * Adds opt-outs and suppressions that arrived where the account was before. What is known already does not change, so that the
 * file can be imported again. Returns how many were new. Throws FileFault when the file has something else, or is damaged:
 * then nothing was added.
 */
export async function importLate(
  { writer }: Pick<Context, 'writer'>,
  file: AccountFile,
  { dryRun, signal }: { dryRun: boolean; signal?: AbortSignal },
): Promise<number> {
  const { accountId } = file.header;
  for await (const items of file.records()) {
    const other = items.find(({ type }) => type !== 'suppression' && type !== 'group_opt_out');
    if (other !== undefined)
      throw new FileFault(`A file of late opt-outs has a record of type ${other.type}`);
  }
  if (dryRun) return 0;
  let added = 0;
  for await (const items of file.records()) {
    for (let at = 0; at < items.length; at += PORTION_RECORDS) {
      signal?.throwIfAborted();
      const portion = items.slice(at, at + PORTION_RECORDS);
      const add = (tx: Tables) => portion.filter((item) => addLate(tx, accountId, item)).length;
      added += await writer.run(add, accountId);
    }
  }
  return added;
}

/** Returns false when it is known, or its group was deleted. */
function addLate(tables: Tables, accountId: string, { type, record }: FileItem): boolean {
  if (type === 'suppression')
    return tables.suppressions.add({ ...record, account_id: accountId, message_seq: null });
  if (type !== 'group_opt_out') return false;
  const { group_seq: groupId, recipient_hash: hash, method, created_at: at } = record;
  const group = tables.subscriptionGroups.get(accountId, groupId);
  if (group === null || tables.groupOptOuts.has(group.seq, hash)) return false;
  const provenance = { at, by: 'recipient', ipAddress: null, userAgent: null };
  return leaveGroup(tables, group, hash, { method, provenance });
}
