import { operate } from '../../api.ts';
import { Button } from '../../parts/button.tsx';
import { fieldText, filledTexts } from '../../parts/field-text.ts';
import { toast } from '../../parts/toast.tsx';
import { Copy, Outcome, RowActions, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import type { Group } from './group-list.tsx';

export const GROUP = '/web-setup/contacts/subscription-groups/{subscriptionGroupId}';

interface GroupSettingsProps {
  group: Group;
  onChange: () => void;
}

/** Name, description and state of a group. */
export function GroupSettings({ group, onChange }: GroupSettingsProps) {
  const { t } = useTexts();
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
          // Unless the person changed it, the sign-up form still decides.
          ...(fields.has('isPublic') === group.isPublic ? {} : { isPublic: fields.has('isPublic') }),
          archive: fields.has('archive'),
          tags: fieldText(fields, 'tags')
            .split(',')
            .map((tag) => tag.trim())
            .filter((tag) => tag !== ''),
        },
      });
      onChange();
      return t('me.saved');
    });
  const readOnly = !may('patchSubscriptionGroup');
  return (
    <div class="card">
      <form
        class="card-body"
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
        <label class="check">
          <input
            class="tick"
            type="checkbox"
            name="isPublic"
            defaultChecked={group.isPublic}
            disabled={readOnly}
          />{' '}
          {t('groups.isPublic')}
        </label>
        <label class="check">
          <input
            class="tick"
            type="checkbox"
            name="archive"
            defaultChecked={group.archive}
            aria-describedby="archive-hint"
            disabled={readOnly}
          />{' '}
          {t('groups.archive')}
        </label>
        <p class="small" id="archive-hint">
          {t(group.isPublic ? 'groups.archive.hint' : 'groups.archive.private')}
        </p>
        {group.archiveUrl !== undefined && (
          <p>
            <a class="value" href={group.archiveUrl} target="_blank" rel="noreferrer">
              {group.archiveUrl}
            </a>{' '}
            <Copy text={group.archiveUrl} label={t('groups.archive.copy')} />
          </p>
        )}
        {!readOnly && (
          <div class="actions">
            <Button type="submit" kind="primary" label={t('me.save')} isBusy={outcome?.running === true} />
          </div>
        )}
        <Outcome of={outcome} />
      </form>
    </div>
  );
}

/** Deletes a group. */
export function GroupMenu({ group }: { group: Group }) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const { name, subscriptionGroupId, totalSubscribers } = group;
  const remove = () =>
    run(async () => {
      await operate('delete', GROUP, { account: accountId, parameters: { subscriptionGroupId } });
      go(href('groups'));
      toast(t('templates.deleted', { name }));
      return '';
    });
  if (!may('deleteSubscriptionGroup')) return null;
  return (
    <>
      <RowActions
        label={name}
        actions={[
          {
            isDanger: true,
            label: t('groups.delete'),
            question: t('groups.delete.confirm', { name, count: totalSubscribers }),
            action: remove,
          },
        ]}
      />
      {outcome?.failed && <Outcome of={outcome} />}
    </>
  );
}
