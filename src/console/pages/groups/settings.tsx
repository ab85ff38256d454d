import { callApi } from '../../api.ts';
import { filledFields } from '../../parts/filled-fields.ts';
import { Confirmed, Outcome, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import type { Group } from './group-list.tsx';

interface GroupSettingsProps {
  group: Group;
  path: string;
  onChange: () => void;
}

/** Name, description and state of a group; deleting it. */
export function GroupSettings({ group, path, onChange }: GroupSettingsProps) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const save = (form: HTMLFormElement) =>
    run(async () => {
      const { name, description = null, tags = '' } = filledFields(form);
      await callApi(path, {
        method: 'PATCH',
        account: accountId,
        body: {
          name,
          description,
          isActive: new FormData(form).has('isActive'),
          tags: tags
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
      await callApi(path, { method: 'DELETE', account: accountId });
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
          void save(event.currentTarget);
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
