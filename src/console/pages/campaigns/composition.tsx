import { useRef, useState } from 'preact/hooks';
import type * as z from 'zod';
import type { campaignSchema } from '../../../http/api/campaign-schemas.ts';
import type { group as groupSchema } from '../../../http/api/contacts/subscription-groups.ts';
import type { domainSchema } from '../../../http/api/domains/domain-schemas.ts';
import type { template as templateSchema } from '../../../http/api/templates.ts';
import { callApi, withQuery } from '../../api.ts';
import { type Data, useData } from '../../data.ts';
import { Preview } from '../../parts/preview/preview.tsx';
import { TestMessage } from '../../parts/test-message.tsx';
import { Confirmed, Empty, Loaded, Outcome, useAction } from '../../parts.tsx';
import { useNavigation, useUnsavedWarning } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { ChoiceForm, type Choices } from './choices.tsx';

type Campaign = z.output<typeof campaignSchema>;
type Group = z.output<typeof groupSchema>;
type Template = z.output<typeof templateSchema>;
type Domain = z.output<typeof domainSchema>;

interface CompositionProps {
  campaign: Campaign;
  path: string;
  reload: () => void;
}

/** Compose, check, test and schedule. */
export function Composition({ campaign, path, reload }: CompositionProps) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const { may } = useMember();
  const choices: Choices = campaign.prepared ?? {};
  const { subscriptionGroupId, templateId } = choices;
  const [groupSearch, setGroupSearch] = useState('');
  const [templateSearch, setTemplateSearch] = useState('');
  const groups = useListed<{ groups: Group[]; nextKey?: string }>(
    '/web-setup/contacts/subscription-groups',
    groupSearch,
  );
  const templates = useListed<{ templates: Template[]; nextKey?: string }>(
    '/web-setup/templates',
    templateSearch,
  );
  const domains = useData<{ domains: Domain[] }>('/web-setup/domains');
  const group = useData<{ group: Group }>(
    subscriptionGroupId === undefined
      ? null
      : `/web-setup/contacts/subscription-groups/${encodeURIComponent(subscriptionGroupId)}`,
  );
  const template = useData<{ template: Template }>(
    templateId === undefined ? null : `/web-setup/templates/${encodeURIComponent(templateId)}`,
  );
  const page = `campaigns/${encodeURIComponent(campaign.campaignId)}`;
  const [isChanged, setChanged] = useState(false);
  useUnsavedWarning(isChanged, t('campaigns.unsaved'));
  const groupOption = ({ subscriptionGroupId: id, name, activeSubscribers: count }: Group) => ({
    id,
    label: t('campaigns.groupMembers', { name, count }),
  });
  const templateOption = ({ templateId: id, name }: Template) => ({ id, label: name });
  // Once shown, the form remains while another choice, which it has just stored, is read: it shows the outcome.
  const isFormReady = useRef(false);
  isFormReady.current ||=
    (subscriptionGroupId === undefined || group.value !== null || group.error !== null) &&
    (templateId === undefined || template.value !== null || template.error !== null);
  return (
    <>
      <h2>{t('campaigns.compose')}</h2>
      {may('patchCampaign') && (
        <Loaded data={groups}>
          {(listedGroups) => (
            <Loaded data={templates}>
              {(listedTemplates) => {
                const usable = listedTemplates.templates.filter(({ type }) => type !== 'transactional');
                if (listedGroups.groups.length === 0 && groupSearch === '')
                  return (
                    <Empty title={t('campaigns.noGroup')}>
                      <p>{t('campaigns.noGroup.hint')}</p>
                    </Empty>
                  );
                if (usable.length === 0 && templateSearch === '' && listedTemplates.nextKey === undefined)
                  return (
                    <Empty title={t('templates.empty')}>
                      <p>{t('campaigns.noTemplate.hint')}</p>
                      <a class="button primary" href={href('templates/new')}>
                        {t('templates.new')}
                      </a>
                    </Empty>
                  );
                return (
                  isFormReady.current && (
                    <>
                      <ChoiceForm
                        path={path}
                        choices={choices}
                        groups={{
                          options: listedGroups.groups.map(groupOption),
                          chosen: group.value === null ? null : groupOption(group.value.group),
                          isStored: subscriptionGroupId !== undefined,
                          isDeleted: group.error?.status === 404,
                          search: groupSearch,
                          onSearch: setGroupSearch,
                          hasMore: listedGroups.nextKey !== undefined,
                        }}
                        templates={{
                          options: usable.map(templateOption),
                          chosen: template.value === null ? null : templateOption(template.value.template),
                          isStored: templateId !== undefined,
                          isDeleted: template.error?.status === 404,
                          search: templateSearch,
                          onSearch: setTemplateSearch,
                          hasMore: listedTemplates.nextKey !== undefined,
                        }}
                        domains={domains.value?.domains ?? []}
                        onChanged={setChanged}
                        onStored={reload}
                      />
                      <p class="small">{t('campaigns.shared')}</p>
                    </>
                  )
                );
              }}
            </Loaded>
          )}
        </Loaded>
      )}
      {templateId !== undefined && (
        <Loaded data={template}>
          {({ template: chosen }) => (
            <>
              <h2>{t('campaigns.check')}</h2>
              <Preview
                page={page}
                content={{
                  subject: choices.subject ?? chosen.subject ?? '',
                  html: chosen.html,
                  text: chosen.text ?? null,
                  from: addressOf(choices.from ?? ''),
                }}
              >
                {(variables) =>
                  may('sendMarketing') &&
                  !isChanged && (
                    <TestMessage
                      templateId={templateId}
                      stream="mk"
                      from={choices.from}
                      subject={choices.subject}
                      variables={variables}
                    />
                  )
                }
              </Preview>
              {isChanged ? (
                <p class="notice" role="status">
                  {t('campaigns.changed')}
                </p>
              ) : may('sendCampaign') ? (
                <Start
                  campaign={campaign}
                  path={path}
                  choices={choices}
                  group={group.value?.group}
                  reload={reload}
                />
              ) : (
                <p class="notice">{t('campaigns.maySend')}</p>
              )}
            </>
          )}
        </Loaded>
      )}
    </>
  );
}

/** The options of a choice whose names have a text. The last ones remain while others are read. */
function useListed<T>(path: string, search: string): Data<T> {
  const data = useData<T>(withQuery(path, { limit: '50', search: search === '' ? undefined : search }));
  const last = useRef(data.value);
  if (data.value !== null) last.current = data.value;
  return { ...data, value: last.current };
}

interface StartProps extends CompositionProps {
  choices: Choices;
  group: Group | undefined;
}

function Start({ campaign, path, choices, group, reload }: StartProps) {
  const { t, time } = useTexts();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const { scheduledAt, from, perHour, subject, templateId } = choices;
  if (group === undefined || from === undefined) return null;
  const start = scheduledAt ?? null;
  const send = () =>
    run(async () => {
      await callApi(`${path}/send`, {
        method: 'POST',
        account: accountId,
        body: {
          subscriptionGroupId: group.subscriptionGroupId,
          templateId,
          from,
          ...(subject === undefined ? {} : { subject }),
          ...(perHour === undefined ? {} : { perHour }),
          ...(start === null ? {} : { scheduledAt: start }),
        },
      });
      reload();
      return t(start === null ? 'campaigns.sending' : 'campaigns.scheduled');
    });
  const values = { name: campaign.name, group: group.name, count: group.activeSubscribers };
  return (
    <>
      <h2>{t('campaigns.start')}</h2>
      <p>
        {start === null
          ? t('campaigns.start.now', values)
          : t('campaigns.start.at', { ...values, time: time(start) })}
      </p>
      <Confirmed
        label={t(start === null ? 'campaigns.send' : 'campaigns.schedule')}
        question={t('campaigns.send.confirm', values)}
        action={send}
      />
      <Outcome of={outcome} />
    </>
  );
}

/** The address of a sender with or without a display name. */
function addressOf(from: string): string {
  return /<([^<>]*)>\s*$/.exec(from)?.[1] ?? from;
}
