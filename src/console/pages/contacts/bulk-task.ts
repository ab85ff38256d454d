import { ApiError, callApi } from '../../api.ts';
import { isRefused, type LongTask, useLongTask } from '../../parts/long-task.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { type BulkContact, readPart } from './whole-search.ts';

/** What is done with each of several contacts. */
export interface BulkWork {
  action: 'add' | 'remove' | 'unsubscribe' | 'erase';
  /** Group of `add` and `remove`. */
  groupId: string;
  contacts: BulkContact[];
  /** The path of the next page of the search; null or absent: there is none. */
  next?: string | null;
}

/** What means that there is nothing left to do: a request whose response did not arrive may have done it. */
const DONE_CODES: Partial<Record<BulkWork['action'], string>> = {
  remove: 'SUBSCRIPTION_NOT_FOUND',
  erase: 'CONTACT_NOT_FOUND',
};

/** Changes contacts one by one; `onEnd` is called when the task ends or stops. */
export function useBulkTask(onEnd: () => void): LongTask<BulkWork> {
  const { accountId } = useMember();
  const { errorText } = useTexts();
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
    async (work) => {
      const { action, groupId, contacts, next = null } = work;
      const [first, ...others] = contacts;
      if (first === undefined) {
        if (next === null) return { rest: null, done: 0 };
        return { rest: { ...work, ...(await readPart(next, accountId)) }, done: 0 };
      }
      const rest = others.length === 0 && next === null ? null : { ...work, contacts: others };
      try {
        await change(action, groupId, first.identifier);
        return { rest, done: 1 };
      } catch (error) {
        const code = error instanceof ApiError ? error.code : '';
        if (code !== '' && code === DONE_CODES[action]) return { rest, done: 1 };
        // Without the group, no other request can succeed.
        if (!isRefused(error) || code === 'SUBSCRIPTION_GROUP_NOT_FOUND') throw error;
        return { rest, done: 1, skipped: 1, refused: [`${first.name}: ${errorText(error)}`] };
      }
    },
    onEnd,
  );
}
