import { ApiError, operate } from '../../api.ts';
import { isRefused, type LongTask, useLongTask } from '../../parts/long-task.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { type BulkContact, type ContactSearch, readPart } from './whole-search.ts';

const CONTACT = '/web-setup/contacts/{contactIdentifier}';
const MEMBERS = '/web-setup/contacts/subscription-groups/{subscriptionGroupId}/subscriptions';

/** What is done with each of several contacts. */
export interface BulkWork {
  action: 'add' | 'remove' | 'unsubscribe' | 'erase';
  /** Group of `add` and `remove`. */
  groupId: string;
  contacts: BulkContact[];
  /** The next page of the search; null or absent: there is none. */
  nextPage?: ContactSearch | null;
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
  const change = (action: BulkWork['action'], subscriptionGroupId: string, contactIdentifier: string) => {
    const contact = { account: accountId, parameters: { contactIdentifier } };
    if (action === 'add')
      return operate('post', MEMBERS, {
        account: accountId,
        parameters: { subscriptionGroupId },
        body: { contactIdentifier },
      });
    if (action === 'remove')
      return operate('delete', `${MEMBERS}/{identifier}`, {
        account: accountId,
        parameters: { subscriptionGroupId, identifier: contactIdentifier },
      });
    return action === 'unsubscribe'
      ? operate('patch', CONTACT, { ...contact, body: { globalStatus: 'unsubscribed' } })
      : operate('delete', CONTACT, contact);
  };
  return useLongTask<BulkWork>(
    'contacts',
    async (work) => {
      const { action, groupId, contacts, nextPage = null } = work;
      const [first, ...others] = contacts;
      if (first === undefined) {
        if (nextPage === null) return { rest: null, done: 0 };
        return { rest: { ...work, ...(await readPart(nextPage, accountId)) }, done: 0 };
      }
      const rest = others.length === 0 && nextPage === null ? null : { ...work, contacts: others };
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
