import { useState } from 'preact/hooks';
import { useOperation } from '../../data.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import type { LongTask } from '../../parts/long-task.tsx';
import { Confirmed } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import type { BulkWork } from './bulk-task.ts';
import { type ListedContact, nameOf } from './contact-list.tsx';
import type { SearchChoice } from './search-choice.tsx';

interface BulkActionsProps {
  chosen: ListedContact[];
  /** The contacts of all pages, if they are chosen. */
  search: SearchChoice;
  task: LongTask<BulkWork>;
  /** Whether all contacts of the page are chosen. */
  isAll: boolean;
  onAll: (all: boolean) => void;
}

/** Actions on the chosen contacts, over the head of their table while there are any. */
export function BulkActions({ chosen, search, task, isAll, onAll }: BulkActionsProps) {
  const { t } = useTexts();
  const { may } = useMember();
  const groups = useOperation('/web-setup/contacts/subscription-groups', { limit: 200 });
  const [chosenGroup, setChosenGroup] = useState('');
  const listed = groups.value?.groups ?? [];
  const group = listed.find((each) => each.subscriptionGroupId === chosenGroup) ?? listed[0];
  const { whole } = search;
  const start = (action: BulkWork['action'], title: string) => {
    const contacts = chosen.map((each) => ({ identifier: each.contactIdentifier, name: nameOf(each) }));
    task.start({
      title,
      work: {
        action,
        groupId: group?.subscriptionGroupId ?? '',
        ...(whole === null ? { contacts } : { contacts: whole.first, nextPage: whole.nextPage }),
      },
      total: whole?.total ?? contacts.length,
    });
    onAll(false);
  };
  const count = whole?.total ?? chosen.length;
  const groupAction = (action: 'add' | 'remove') => {
    const label = t(action === 'add' ? 'contacts.addToGroup' : 'contacts.removeFromGroup');
    const begin = () => start(action, label);
    if (whole === null)
      return (
        <button class="button" type="button" onClick={begin}>
          {label}
        </button>
      );
    return (
      <Confirmed
        label={label}
        question={t(action === 'add' ? 'contacts.addToGroup.confirm' : 'contacts.removeFromGroup.confirm', {
          count,
          group: group?.name ?? '',
        })}
        action={async () => begin()}
      />
    );
  };
  const hasChoice = whole !== null ? whole.total > 0 : chosen.length > 0 && search.counted === null;
  // Also while the contacts of the search are counted, and when that failed.
  if (chosen.length === 0 && whole === null && search.counted === null && !search.outcome) return null;
  return (
    <section class="bulk" aria-label={t('contacts.bulk')}>
      <div class="actions">
        <button
          class="button ghost icon-only"
          type="button"
          aria-label={t('contacts.chooseNone')}
          title={t('contacts.chooseNone')}
          onClick={() => onAll(false)}
        >
          <Icon name="x" />
        </button>
        <span role="status">
          {search.counted !== null
            ? t('contacts.counting', { count: search.counted })
            : t(whole === null ? 'contacts.chosen' : 'contacts.chosenSearch', { count })}
        </span>
        {!isAll && whole === null && (
          <button class="button" type="button" onClick={() => onAll(true)}>
            {t('contacts.chooseAll')}
          </button>
        )}
        {search.offer}
      </div>
      {search.outcome}
      {hasChoice && (task.state === null || task.status === 'finished') && (
        <div class="actions">
          {group !== undefined && (
            <>
              <label class="field">
                {t('contacts.group')}
                <select
                  class="select"
                  value={group.subscriptionGroupId}
                  onChange={({ currentTarget }) => setChosenGroup(currentTarget.value)}
                >
                  {listed.map(({ subscriptionGroupId, name }) => (
                    <option value={subscriptionGroupId} key={subscriptionGroupId}>
                      {name}
                    </option>
                  ))}
                </select>
              </label>
              {groupAction('add')}
              {groupAction('remove')}
            </>
          )}
          <Confirmed
            label={t('contacts.unsubscribe')}
            question={t('contacts.unsubscribe.confirm', { count })}
            action={async () => start('unsubscribe', t('contacts.unsubscribe'))}
          />
          {may('eraseContact') && (
            <Confirmed
              isDanger
              label={t('contacts.erase')}
              question={t('contacts.erase.confirm', { count })}
              action={async () => start('erase', t('contacts.erase'))}
            />
          )}
        </div>
      )}
    </section>
  );
}
