import type { AudienceResponse } from '../../../http/console/figure-routes.ts';
import { type Data, useConsoleData, useOperation } from '../../data.ts';
import { addressOf } from '../../operations.ts';
import { ShareBar } from '../../parts/chart/share-bar.tsx';
import { FactList } from '../../parts/fact-list.tsx';
import { Card, Empty, Loaded } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { CAMPAIGN, type Choices } from './draft-saver.ts';
import { type OptionName, SearchedChoices, useListed } from './searched-select.tsx';

const GROUPS = '/web-setup/contacts/subscription-groups';
const SEGMENTS = '/web-setup/segments';

/** The maximum of the API, of groups and of each kind of exclusion. */
const MAX_CHOICES = 50;

/** What of a draft decides who receives it. */
export type AudienceChoices = Pick<
  Choices,
  'subscriptionGroupId' | 'subscriptionGroupIds' | 'segmentId' | 'excludeSegmentIds' | 'excludeCampaignIds'
>;

/** The audience of a draft, as the request that sends it has it. */
export function audienceOf(choices: AudienceChoices): AudienceChoices {
  const { subscriptionGroupId, subscriptionGroupIds, segmentId, excludeSegmentIds, excludeCampaignIds } =
    choices;
  return { subscriptionGroupId, subscriptionGroupIds, segmentId, excludeSegmentIds, excludeCampaignIds };
}

/** Whether a draft has an audience. */
export function hasAudience(choices: AudienceChoices): boolean {
  return groupsOf(choices).length > 0 || choices.segmentId !== undefined;
}

function groupsOf({ subscriptionGroupId, subscriptionGroupIds = [] }: AudienceChoices): string[] {
  return [
    ...new Set([
      ...(subscriptionGroupId === undefined ? [] : [subscriptionGroupId]),
      ...subscriptionGroupIds,
    ]),
  ];
}

/** Who of the audience of a draft can receive it. */
export function useAudience(choices: AudienceChoices): Data<AudienceResponse> {
  const { accountId } = useMember();
  const { segmentId, excludeSegmentIds = [], excludeCampaignIds = [] } = choices;
  return useConsoleData<AudienceResponse>(
    hasAudience(choices)
      ? addressOf('/console/figures/audience', {
          subscriptionGroupIds: groupsOf(choices).join(','),
          segmentId,
          excludeSegmentIds: excludeSegmentIds.join(','),
          excludeCampaignIds: excludeCampaignIds.join(','),
        })
      : null,
    accountId,
  );
}

interface AudienceFieldsProps {
  choices: AudienceChoices;
  onChange: (changed: AudienceChoices) => void;
}

/** The choice of groups, of a segment, and of who is excluded. */
export function AudienceFields({ choices, onChange }: AudienceFieldsProps) {
  const { t } = useTexts();
  const { segmentId, excludeSegmentIds = [], excludeCampaignIds = [] } = choices;
  return (
    <>
      <GroupChoices
        chosen={groupsOf(choices)}
        onChange={([first, ...others]) =>
          onChange(
            others.length === 0 || first === undefined
              ? { subscriptionGroupId: first, subscriptionGroupIds: undefined }
              : { subscriptionGroupId: undefined, subscriptionGroupIds: [first, ...others] },
          )
        }
      />
      <SegmentChoices
        label={t('segments.segment')}
        hint={t('campaigns.segment.hint')}
        max={1}
        chosen={segmentId === undefined ? [] : [segmentId]}
        onChange={([id]) => onChange({ segmentId: id })}
      />
      <details open={excludeSegmentIds.length + excludeCampaignIds.length > 0}>
        <summary>{t('campaigns.exclude')}</summary>
        <SegmentChoices
          label={t('campaigns.excludeSegments')}
          max={MAX_CHOICES}
          chosen={excludeSegmentIds}
          onChange={(ids) => onChange({ excludeSegmentIds: ids.length === 0 ? undefined : ids })}
        />
        <CampaignChoices
          chosen={excludeCampaignIds}
          onChange={(ids) => onChange({ excludeCampaignIds: ids.length === 0 ? undefined : ids })}
        />
      </details>
    </>
  );
}

interface ChoicesProps {
  chosen: readonly string[];
  onChange: (ids: string[]) => void;
}

function GroupChoices({ chosen, onChange }: ChoicesProps) {
  const { t, plural } = useTexts();
  const { href } = useNavigation();
  const { data, searching } = useListed((parameters) => useOperation(GROUPS, parameters));
  return (
    <Loaded data={data}>
      {({ groups, nextKey }) =>
        groups.length === 0 && !searching.isSearched ? (
          <Empty title={t('campaigns.noGroup')} icon="users-round">
            <p>{t('campaigns.noGroup.hint')}</p>
            <a class="button primary" href={href('groups')}>
              {t('page.groups')}
            </a>
          </Empty>
        ) : (
          <SearchedChoices
            label={t('page.groups')}
            searchLabel={t('campaigns.searchGroups')}
            of={{
              options: groups.map(({ subscriptionGroupId: id, name, activeSubscribers }) => ({
                id,
                label: plural('campaigns.groupMembers', activeSubscribers, { name }),
              })),
              chosen,
              max: MAX_CHOICES,
              useName: useGroupName,
              ...searching,
              hasMore: nextKey !== undefined,
              onChange,
            }}
          />
        )
      }
    </Loaded>
  );
}

function useGroupName(id: string): OptionName {
  const { value, error } = useOperation(`${GROUPS}/{subscriptionGroupId}`, { subscriptionGroupId: id });
  return { name: value?.group.name, isDeleted: error?.status === 404 };
}

function SegmentChoices(props: ChoicesProps & { label: string; hint?: string; max: number }) {
  const { label, hint, max, chosen, onChange } = props;
  const { t } = useTexts();
  const { data, searching } = useListed((parameters) =>
    useOperation(SEGMENTS, { ...parameters, counts: 'false' }),
  );
  return (
    <Loaded data={data}>
      {({ segments, nextKey }) => (
        <SearchedChoices
          label={label}
          {...(hint === undefined ? {} : { hint })}
          searchLabel={t('campaigns.searchSegments')}
          of={{
            options: segments.map(({ segmentId: id, name }) => ({ id, label: name })),
            chosen,
            max,
            useName: useSegmentName,
            ...searching,
            hasMore: nextKey !== undefined,
            onChange,
          }}
        />
      )}
    </Loaded>
  );
}

function useSegmentName(id: string): OptionName {
  const { value, error } = useOperation(`${SEGMENTS}/{segmentId}`, { segmentId: id });
  return { name: value?.segment.name, isDeleted: error?.status === 404 };
}

function CampaignChoices({ chosen, onChange }: ChoicesProps) {
  const { t } = useTexts();
  const { data, searching } = useListed((parameters) => useOperation('/web-setup/campaigns', parameters));
  return (
    <Loaded data={data}>
      {({ campaigns, nextKey }) => (
        <SearchedChoices
          label={t('campaigns.excludeCampaigns')}
          searchLabel={t('campaigns.searchCampaigns')}
          of={{
            options: campaigns
              .filter(({ status }) => status !== 'draft')
              .map(({ campaignId: id, name }) => ({ id, label: name })),
            chosen,
            max: MAX_CHOICES,
            useName: useCampaignName,
            ...searching,
            hasMore: nextKey !== undefined,
            onChange,
          }}
        />
      )}
    </Loaded>
  );
}

function useCampaignName(id: string): OptionName {
  const { value, error } = useOperation(CAMPAIGN, { campaignId: id });
  return { name: value?.campaign.name, isDeleted: error?.status === 404 };
}

/** How many people of the audience can receive the campaign, and why the others cannot. */
export function AudienceCard({
  choices,
  audience,
}: {
  choices: AudienceChoices;
  audience: Data<AudienceResponse>;
}) {
  const { t, number, percent } = useTexts();
  return (
    <Card title={t('campaigns.audience')}>
      <div class="card-body">
        {!hasAudience(choices) ? (
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
