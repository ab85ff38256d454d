import { useState } from 'preact/hooks';
import type * as z from 'zod';
import type { campaignSchema } from '../../../http/api/campaign-schemas.ts';
import type { group as groupSchema } from '../../../http/api/contacts/subscription-groups.ts';
import type { domainSchema } from '../../../http/api/domains/domain-schemas.ts';
import type { template as templateSchema } from '../../../http/api/templates.ts';
import { callApi } from '../../api.ts';
import { useData } from '../../data.ts';
import { Preview } from '../../parts/preview.tsx';
import { Confirmed, Empty, Loaded, Outcome, useAction } from '../../parts.tsx';
import { useNavigation, useUnsavedWarning } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { ChoiceForm, type Choices, FIELDS } from './choices.tsx';

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
  const { location, href } = useNavigation();
  const { may } = useMember();
  const choices: Choices = Object.fromEntries(
    FIELDS.flatMap((name) => {
      const value = location.query[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
  const groups = useData<{ groups: Group[] }>('/web-setup/contacts/subscription-groups?limit=100');
  const templates = useData<{ templates: Template[] }>('/web-setup/templates?limit=100');
  const domains = useData<{ domains: Domain[] }>('/web-setup/domains');
  const template = useData<{ template: Template }>(
    choices.template === undefined ? null : `/web-setup/templates/${encodeURIComponent(choices.template)}`,
  );
  const page = `campaigns/${encodeURIComponent(campaign.campaignId)}`;
  const [isChanged, setChanged] = useState(false);
  useUnsavedWarning(isChanged, t('campaigns.unsaved'));
  const usable = (templates.value?.templates ?? []).filter(({ type }) => type !== 'transactional');
  return (
    <>
      <h2>{t('campaigns.compose')}</h2>
      <Loaded data={groups}>
        {(listed) => (
          <Loaded data={templates}>
            {() =>
              listed.groups.length === 0 ? (
                <Empty title={t('campaigns.noGroup')}>
                  <p>{t('campaigns.noGroup.hint')}</p>
                </Empty>
              ) : usable.length === 0 ? (
                <Empty title={t('templates.empty')}>
                  <p>{t('campaigns.noTemplate.hint')}</p>
                  <a class="button primary" href={href('templates/new')}>
                    {t('templates.new')}
                  </a>
                </Empty>
              ) : (
                <>
                  <ChoiceForm
                    key={JSON.stringify(choices)}
                    page={page}
                    choices={choices}
                    groups={listed.groups}
                    templates={usable}
                    domains={domains.value?.domains ?? []}
                    onChanged={setChanged}
                  />
                  <p class="small">{t('campaigns.shared')}</p>
                </>
              )
            }
          </Loaded>
        )}
      </Loaded>
      {choices.template !== undefined && (
        <Loaded data={template}>
          {({ template: chosen }) => (
            <>
              <h2>{t('campaigns.check')}</h2>
              <Preview
                page={page}
                keep={choices}
                content={{
                  subject: choices.subject ?? chosen.subject ?? '',
                  html: chosen.html,
                  text: chosen.text,
                  from: addressOf(choices.from ?? ''),
                }}
              />
              {may('sendMarketing') && !isChanged && <TestMessage choices={choices} />}
              {isChanged ? (
                <p class="notice" role="status">
                  {t('campaigns.changed')}
                </p>
              ) : may('sendCampaign') ? (
                <Start
                  campaign={campaign}
                  path={path}
                  choices={choices}
                  group={groups.value?.groups.find((each) => each.subscriptionGroupId === choices.group)}
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

/** Sends the content to one address, which must be a contact with consent, with this contact's values. */
function TestMessage({ choices }: { choices: Choices }) {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { accountId, person } = useMember();
  const contactId = location.query['contact'];
  const contact = useData<{ contact: Record<string, unknown> }>(
    contactId === undefined ? null : `/web-setup/contacts/${encodeURIComponent(contactId)}`,
  );
  const { outcome, run } = useAction();
  const send = (to: string) =>
    run(async () => {
      const { email: _, ...fields } = contact.value?.contact ?? {};
      const { firstName, lastName, phone, customFields } = fields;
      const { messageId } = await callApi<{ messageId: string }>('/marketing/send', {
        method: 'POST',
        account: accountId,
        body: {
          to,
          from: choices.from,
          templateId: choices.template,
          ...(choices.subject === undefined ? {} : { subject: choices.subject }),
          templateVariables: {
            email: to,
            firstName: firstName ?? '',
            lastName: lastName ?? '',
            phone: phone ?? '',
            customFields: customFields ?? {},
          },
        },
      });
      return t('campaigns.test.sent', { id: messageId });
    });
  return (
    <>
      <h2>{t('campaigns.test')}</h2>
      <form
        class="search"
        onSubmit={(event) => {
          event.preventDefault();
          const to = new FormData(event.currentTarget).get('to');
          if (typeof to === 'string') void send(to.trim());
        }}
      >
        <label>
          {t('campaigns.test.to')}
          <input
            name="to"
            type="email"
            required
            maxLength={320}
            defaultValue={person.email}
            aria-describedby="test-hint"
          />
          <span id="test-hint" class="small">
            {t('campaigns.test.hint')}
          </span>
        </label>
        <div class="actions">
          <button type="submit" disabled={outcome?.running}>
            {t('campaigns.test.send')}
          </button>
          <a class="button" href={href('messages')}>
            {t('page.messages')}
          </a>
        </div>
      </form>
      <Outcome of={outcome} />
    </>
  );
}

interface StartProps extends CompositionProps {
  choices: Choices;
  group: Group | undefined;
}

function Start({ campaign, path, choices, group, reload }: StartProps) {
  const { t, time } = useTexts();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const { at, from, perHour, subject, template } = choices;
  if (group === undefined || from === undefined) return null;
  const start = at === undefined || Number.isNaN(Date.parse(at)) ? null : new Date(at).toISOString();
  const send = () =>
    run(async () => {
      const { message } = await callApi<{ message: string }>(`${path}/send`, {
        method: 'POST',
        account: accountId,
        body: {
          subscriptionGroupId: group.subscriptionGroupId,
          templateId: template,
          from,
          ...(subject === undefined ? {} : { subject }),
          ...(perHour === undefined ? {} : { perHour: Number(perHour) }),
          ...(start === null ? {} : { scheduledAt: start }),
        },
      });
      reload();
      return message;
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
