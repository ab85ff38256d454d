import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { CreationDrawer } from '../../parts/drawer.tsx';
import { fieldText, filledTexts } from '../../parts/field-text.ts';
import { Pager } from '../../parts/pager.tsx';
import { Time } from '../../parts/time.tsx';
import { Chip, Empty, Loaded, Outcome, Page, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

const GROUPS = '/web-setup/contacts/subscription-groups';

export type Group = DataOf<typeof GROUPS>['groups'][number];

/** The subscription groups of the account. */
export function GroupListPage() {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { may } = useMember();
  const parameters = { limit: 50, lastKey: location.query['lastKey'] };
  const list = useOperation(GROUPS, parameters);
  return (
    <Page
      title={t('page.groups')}
      question={t('groups.question')}
      curl={addressOf(GROUPS, parameters)}
      actions={
        may('createSubscriptionGroup') && (
          <CreationDrawer title={t('groups.new')}>{() => <Creation />}</CreationDrawer>
        )
      }
    >
      <Loaded data={list}>
        {({ groups, nextKey }) => (
          <>
            {groups.length === 0 ? (
              <Empty title={t('groups.empty')} icon="users-round">
                <p>{t('groups.empty.hint')}</p>
              </Empty>
            ) : (
              <Table
                label={t('page.groups')}
                isList
                heads={[
                  t('people.name'),
                  { text: t('groups.members'), end: true },
                  t('messages.status'),
                  { text: t('messages.created'), end: true },
                ]}
              >
                {groups.map((each) => (
                  <tr key={each.subscriptionGroupId}>
                    <th scope="row">
                      <a href={href(`groups/${encodeURIComponent(each.subscriptionGroupId)}`)}>{each.name}</a>
                      {each.description !== undefined && <p class="small">{each.description}</p>}
                    </th>
                    <td class="second">
                      {t('groups.counts', { active: each.activeSubscribers, total: each.totalSubscribers })}
                    </td>
                    <td class="aside">
                      <GroupStatus group={each} />
                    </td>
                    <td class="when">
                      <Time at={each.createdAt} />
                    </td>
                  </tr>
                ))}
              </Table>
            )}
            <Pager path="groups" filters={{}} nextKey={nextKey} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** Whether a group receives mail, and its last import. */
export function GroupStatus({ group }: { group: Group }) {
  const { t } = useTexts();
  const { isActive, importStatus } = group;
  return (
    <>
      <Chip kind={isActive ? 'ok' : 'idle'}>{t(isActive ? 'groups.active' : 'groups.inactive')}</Chip>{' '}
      {importStatus !== null && importStatus !== 'completed' && (
        <Chip kind={importStatus === 'interrupted' ? 'bad' : 'idle'}>
          {t(`groups.import.${importStatus}`)}
        </Chip>
      )}
    </>
  );
}

function Creation() {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const create = (form: HTMLFormElement) =>
    run(async () => {
      const fields = new FormData(form);
      const { group } = await operate('post', GROUPS, {
        account: accountId,
        body: { name: fieldText(fields, 'name'), ...filledTexts(fields, 'description') },
      });
      go(href(`groups/${encodeURIComponent(group.subscriptionGroupId)}`));
      return '';
    });
  return (
    <>
      <form
        aria-label={t('groups.new')}
        onSubmit={(event) => {
          event.preventDefault();
          void create(event.currentTarget);
        }}
      >
        <label class="field">
          {t('people.name')}
          <input class="input" name="name" required maxLength={200} autocomplete="off" />
        </label>
        <label class="field">
          {t('groups.description')}
          <input class="input" name="description" maxLength={1000} autocomplete="off" />
        </label>
        <div class="actions">
          <Button
            type="submit"
            kind="primary"
            label={t('groups.create')}
            isBusy={outcome?.running === true}
          />
        </div>
      </form>
      <Outcome of={outcome} />
    </>
  );
}
