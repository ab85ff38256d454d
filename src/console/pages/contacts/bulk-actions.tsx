import { useRef } from 'preact/hooks';
import { useData } from '../../data.ts';
import type { LongTask } from '../../parts/long-task.tsx';
import { Confirmed } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import type { BulkWork } from './bulk-task.ts';
import { type ListedContact, nameOf } from './contact-list.tsx';

interface BulkActionsProps {
  chosen: ListedContact[];
  task: LongTask<BulkWork>;
  onAll: (all: boolean) => void;
}

/** Actions on the chosen contacts. */
export function BulkActions({ chosen, task, onAll }: BulkActionsProps) {
  const { t } = useTexts();
  const { may } = useMember();
  const groups = useData<{ groups: { subscriptionGroupId: string; name: string }[] }>(
    '/web-setup/contacts/subscription-groups?limit=200',
  );
  const group = useRef<HTMLSelectElement>(null);
  const start = (action: BulkWork['action'], title: string) => {
    const contacts = chosen.map((each) => ({ identifier: each.contactIdentifier, name: nameOf(each) }));
    task.start({
      title,
      work: { action, groupId: group.current?.value ?? '', contacts },
      total: contacts.length,
    });
    onAll(false);
  };
  const count = chosen.length;
  return (
    <section aria-label={t('contacts.bulk')}>
      <div class="actions">
        <button type="button" onClick={() => onAll(true)}>
          {t('contacts.chooseAll')}
        </button>
        <button type="button" disabled={count === 0} onClick={() => onAll(false)}>
          {t('contacts.chooseNone')}
        </button>
        <span>{t('contacts.chosen', { count })}</span>
      </div>
      {count > 0 && (task.state === null || task.status === 'finished') && (
        <div class="actions">
          {groups.value !== null && groups.value.groups.length > 0 && (
            <>
              <label>
                {t('contacts.group')}
                <select ref={group}>
                  {groups.value.groups.map(({ subscriptionGroupId, name }) => (
                    <option value={subscriptionGroupId} key={subscriptionGroupId}>
                      {name}
                    </option>
                  ))}
                </select>
              </label>
              <button type="button" onClick={() => start('add', t('contacts.addToGroup'))}>
                {t('contacts.addToGroup')}
              </button>
              <button type="button" onClick={() => start('remove', t('contacts.removeFromGroup'))}>
                {t('contacts.removeFromGroup')}
              </button>
            </>
          )}
          <Confirmed
            label={t('contacts.unsubscribe')}
            question={t('contacts.unsubscribe.confirm', { count })}
            action={async () => start('unsubscribe', t('contacts.unsubscribe'))}
          />
          {may('eraseContact') && (
            <Confirmed
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
