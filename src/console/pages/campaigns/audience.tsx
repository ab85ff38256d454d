import type { AudienceResponse } from '../../../http/console/figure-routes.ts';
import { type Data, useConsoleData, useOperation } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { ShareBar } from '../../parts/chart/share-bar.tsx';
import { FactList } from '../../parts/fact-list.tsx';
import { Card, Empty, Loaded } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { SearchedSelect, useListed } from './searched-select.tsx';

const GROUPS = '/web-setup/contacts/subscription-groups';
const GROUP = `${GROUPS}/{subscriptionGroupId}` as const;

export type AudienceGroup = DataOf<typeof GROUP>['group'];

/** The group of a campaign; null: it could not be read, or none is chosen. */
export function useGroup(groupId: string | undefined): Data<{ group: AudienceGroup }> {
  return useOperation(groupId === undefined ? null : GROUP, { subscriptionGroupId: groupId ?? '' });
}

/** Who of a group can receive a campaign. */
export function useAudience(groupId: string | undefined): Data<AudienceResponse> {
  const { accountId } = useMember();
  return useConsoleData<AudienceResponse>(
    groupId === undefined ? null : `/console/figures/audience/${encodeURIComponent(groupId)}`,
    accountId,
  );
}

interface GroupChoiceProps {
  groupId: string | undefined;
  group: Data<{ group: AudienceGroup }>;
  onChoose: (id: string) => void;
}

/** The choice of the group. */
export function GroupChoice({ groupId, group, onChoose }: GroupChoiceProps) {
  const { t, plural } = useTexts();
  const { href } = useNavigation();
  const { data, search, onSearch } = useListed((parameters) => useOperation(GROUPS, parameters));
  const option = ({ subscriptionGroupId: id, name, activeSubscribers }: AudienceGroup) => ({
    id,
    label: plural('campaigns.groupMembers', activeSubscribers, { name }),
  });
  return (
    <Loaded data={data}>
      {({ groups, nextKey }) => {
        if (groups.length === 0 && search === '')
          return (
            <Empty title={t('campaigns.noGroup')} icon="users-round">
              <p>{t('campaigns.noGroup.hint')}</p>
              <a class="button primary" href={href('groups')}>
                {t('page.groups')}
              </a>
            </Empty>
          );
        const listed = groups.find(({ subscriptionGroupId }) => subscriptionGroupId === groupId);
        const read = group.value?.group;
        const chosen = listed ?? (read?.subscriptionGroupId === groupId ? read : undefined);
        return (
          <SearchedSelect
            label={t('campaigns.group')}
            searchLabel={t('campaigns.searchGroups')}
            of={{
              options: groups.map(option),
              chosen: chosen === undefined ? null : option(chosen),
              isDeleted: group.error?.status === 404,
              search,
              onSearch,
              hasMore: nextKey !== undefined,
              onChoose,
            }}
          />
        );
      }}
    </Loaded>
  );
}

/** How many of the group can receive the campaign, and why the others cannot. */
export function AudienceCard({
  groupId,
  audience,
}: {
  groupId: string | undefined;
  audience: Data<AudienceResponse>;
}) {
  const { t, number, percent } = useTexts();
  return (
    <Card title={t('campaigns.audience')}>
      <div class="card-body">
        {groupId === undefined ? (
          <p>{t('campaigns.audience.none')}</p>
        ) : (
          <Loaded data={audience}>
            {({ members, eligible, suppressed, withoutConsent, withoutEmail, isPartial }) => (
              <>
                <p class="audience-count">
                  <strong>{isPartial ? percent(eligible, members) : number(eligible)}</strong>{' '}
                  {t(isPartial ? 'campaigns.audience.share' : 'campaigns.audience.of', { members })}
                </p>
                <ShareBar total={members} parts={[{ color: '--c-delivered', value: eligible }]} />
                <FactList
                  facts={[
                    [t('campaigns.audience.suppressed'), suppressed === 0 ? '' : number(suppressed)],
                    [t('campaigns.audience.consent'), withoutConsent === 0 ? '' : number(withoutConsent)],
                    [t('campaigns.withoutEmail'), withoutEmail === 0 ? '' : number(withoutEmail)],
                  ]}
                />
                <p class="small">{t('campaigns.audience.hint')}</p>
              </>
            )}
          </Loaded>
        )}
      </div>
    </Card>
  );
}
