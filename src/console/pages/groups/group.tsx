import { useState } from 'preact/hooks';
import { useOperation } from '../../data.ts';
import { addressOf } from '../../operations.ts';
import { Tabs } from '../../parts/tabs.tsx';
import { Loaded, Page } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { GroupStatus } from './group-list.tsx';
import { Addition, MEMBERS, Members } from './members.tsx';
import { GROUP, GroupMenu, GroupSettings } from './settings.tsx';
import { SignUp } from './sign-up.tsx';

const TABS = ['members', 'form', 'settings'] as const;

/** A subscription group: its members, its settings. The tab is in the address. */
export function GroupPage({ groupId }: { groupId: string }) {
  const { t, number } = useTexts();
  const { may } = useMember();
  const { location, href } = useNavigation();
  const page = `groups/${encodeURIComponent(groupId)}`;
  const [additions, setAdditions] = useState(0);
  const data = useOperation(GROUP, { subscriptionGroupId: groupId });
  const tab = TABS.find((name) => name === location.query['tab']) ?? 'members';
  const group = data.value?.group;
  return (
    <Page
      title={group?.name ?? t('page.groups')}
      chip={group !== undefined && <GroupStatus group={group} />}
      question={
        group &&
        [
          t('groups.counts', {
            active: number(group.activeSubscribers),
            total: number(group.totalSubscribers),
          }),
          group.description,
        ]
          .filter(Boolean)
          .join(' · ')
      }
      actions={
        group !== undefined && (
          <>
            {may('addSubscription') && (
              <Addition
                groupId={groupId}
                onAdded={() => {
                  setAdditions((last) => last + 1);
                  data.reload();
                }}
              />
            )}
            <GroupMenu group={group} />
          </>
        )
      }
      curl={addressOf(tab === 'members' ? MEMBERS : GROUP, { subscriptionGroupId: groupId })}
    >
      <Tabs
        label={t('page.groups')}
        tabs={TABS.map((name) => ({
          name: t(`groups.tab.${name}`),
          address: href(page, { tab: name === 'members' ? undefined : name }),
          isCurrent: name === tab,
        }))}
      />
      <Loaded data={data}>
        {({ group: read }) =>
          tab === 'members' ? (
            <Members group={read} page={page} additions={additions} onChange={data.reload} />
          ) : tab === 'form' ? (
            <SignUp group={read} page={page} onChange={data.reload} />
          ) : (
            <GroupSettings group={read} onChange={data.reload} />
          )
        }
      </Loaded>
    </Page>
  );
}
