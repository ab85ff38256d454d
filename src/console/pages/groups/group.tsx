import { useOperation } from '../../data.ts';
import { addressOf } from '../../operations.ts';
import { Loaded, Page } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import { GroupStatus } from './group-list.tsx';
import { MEMBERS, Members } from './members.tsx';
import { GROUP, GroupSettings } from './settings.tsx';
import { SignUp } from './sign-up.tsx';

const TABS = ['members', 'form', 'settings'] as const;

/** A subscription group: its members, its settings. The tab is in the address. */
export function GroupPage({ groupId }: { groupId: string }) {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const page = `groups/${encodeURIComponent(groupId)}`;
  const data = useOperation(GROUP, { subscriptionGroupId: groupId });
  const tab = TABS.find((name) => name === location.query['tab']) ?? 'members';
  return (
    <Page
      title={data.value?.group.name ?? t('page.groups')}
      question={t('groups.question')}
      curl={addressOf(tab === 'members' ? MEMBERS : GROUP, { subscriptionGroupId: groupId })}
    >
      <p>
        <a href={href('groups')}>{t('app.back')}</a>
      </p>
      <Loaded data={data}>
        {({ group }) => (
          <>
            {group.description !== undefined && <p>{group.description}</p>}
            <p>
              <GroupStatus group={group} />{' '}
              {t('groups.counts', { active: group.activeSubscribers, total: group.totalSubscribers })}
            </p>
            <nav class="actions" aria-label={group.name}>
              {TABS.map((name) => (
                <a
                  class="button"
                  key={name}
                  href={href(page, { tab: name === 'members' ? undefined : name })}
                  aria-current={name === tab ? 'page' : undefined}
                >
                  {t(`groups.tab.${name}`)}
                </a>
              ))}
            </nav>
            {tab === 'members' ? (
              <Members group={group} page={page} onChange={data.reload} />
            ) : tab === 'form' ? (
              <SignUp group={group} page={page} onChange={data.reload} />
            ) : (
              <GroupSettings group={group} onChange={data.reload} />
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}
