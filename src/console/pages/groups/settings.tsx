import { operate } from '../../api.ts';
import { fieldText, filledTexts } from '../../parts/field-text.ts';
import { Confirmed, Outcome, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import type { Group } from './group-list.tsx';

export const GROUP = '/web-setup/contacts/subscription-groups/{subscriptionGroupId}';

interface GroupSettingsProps {
  group: Group;
  onChange: () => void;
}

/** Name, description and state of a group; deleting it. */
export function GroupSettings({ group, onChange }: GroupSettingsProps) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const request = {
    account: accountId,
    parameters: { subscriptionGroupId: group.subscriptionGroupId },
  };
  const save = (fields: FormData) =>
    run(async () => {
      await operate('patch', GROUP, {
        ...request,
        body: {
          description: null,
          ...filledTexts(fields, 'name', 'description'),
          isActive: fields.has('isActive'),
          tags: fieldText(fields, 'tags')
            .split(',')
            .map((tag) => tag.trim())
            .filter((tag) => tag !== ''),
        },
      });
      onChange();
      return t('me.saved');
    });
  const remove = () =>
    run(async () => {
      await operate('delete', GROUP, request);
      go(href('groups'));
      return '';
    });
  const readOnly = !may('patchSubscriptionGroup');
  return (
    <>
      <form
        aria-label={t('groups.tab.settings')}
        onSubmit={(event) => {
          event.preventDefault();
          void save(new FormData(event.currentTarget));
        }}
      >
        <label class="field">
          {t('people.name')}
          <input
            class="input"
            name="name"
            required
            maxLength={200}
            defaultValue={group.name}
            readOnly={readOnly}
          />
        </label>
        <label class="field">
          {t('groups.description')}
          <input
            class="input"
            name="description"
            maxLength={1000}
            defaultValue={group.description ?? ''}
            readOnly={readOnly}
          />
        </label>
        <label class="field">
          {t('groups.tags')}
          <input
            class="input"
            name="tags"
            maxLength={2600}
            defaultValue={group.tags.join(', ')}
            readOnly={readOnly}
          />
        </label>
        <label class="check">
          <input
            class="tick"
            type="checkbox"
            name="isActive"
            defaultChecked={group.isActive}
            disabled={readOnly}
          />{' '}
          {t('groups.receives')}
        </label>
        {!readOnly && (
          <div class="actions">
            <button type="submit" class="button primary" disabled={outcome?.running}>
              {t('me.save')}
            </button>
          </div>
        )}
      </form>
      <Outcome of={outcome} />
      {may('deleteSubscriptionGroup') && (
        <Confirmed
          isDanger
          label={t('groups.delete')}
          question={t('groups.delete.confirm', { name: group.name, count: group.totalSubscribers })}
          action={remove}
        />
      )}
    </>
  );
}
