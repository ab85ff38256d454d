import { callApi } from '../../api.ts';
import { isRefused, type LongTask, useLongTask } from '../../parts/long-task.tsx';
import { useMember } from '../../session.ts';

/** What is done with each of several contacts. */
export interface BulkWork {
  action: 'add' | 'remove' | 'unsubscribe' | 'erase';
  /** Of `add` and `remove`. */
  groupId: string;
  contacts: { identifier: string; name: string }[];
}

/** Changes contacts one by one; `onEnd` is called when the task ends or stops. */
export function useBulkTask(onEnd: () => void): LongTask<BulkWork> {
  const { accountId } = useMember();
  const send = (path: string, method: 'POST' | 'PATCH' | 'DELETE', body?: object) =>
    callApi(path, { method, account: accountId, ...(body === undefined ? {} : { body }) });
  const change = (action: BulkWork['action'], groupId: string, identifier: string) => {
    const members = `/web-setup/contacts/subscription-groups/${encodeURIComponent(groupId)}/subscriptions`;
    const contact = `/web-setup/contacts/${encodeURIComponent(identifier)}`;
    if (action === 'add') return send(members, 'POST', { contactIdentifier: identifier });
    if (action === 'remove') return send(`${members}/${encodeURIComponent(identifier)}`, 'DELETE');
    return action === 'unsubscribe'
      ? send(contact, 'PATCH', { globalStatus: 'unsubscribed' })
      : send(contact, 'DELETE');
  };
  return useLongTask<BulkWork>(
    'contacts',
    async ({ action, groupId, contacts: [first, ...others] }) => {
      const rest = others.length === 0 ? null : { action, groupId, contacts: others };
      if (first === undefined) return { rest, done: 0 };
      try {
        await change(action, groupId, first.identifier);
        return { rest, done: 1 };
      } catch (error) {
        if (!isRefused(error)) throw error;
        return { rest, done: 1, skipped: 1, refused: [`${first.name}: ${error.message}`] };
      }
    },
    onEnd,
  );
}
