import type * as z from 'zod';
import type { campaignSchema } from '../../../http/api/campaign-schemas.ts';
import type { group as groupSchema } from '../../../http/api/contacts/subscription-groups.ts';
import type { domainSchema } from '../../../http/api/domains/domain-schemas.ts';
import type { template as templateSchema } from '../../../http/api/templates.ts';
import { callApi } from '../../api.ts';
import { useData } from '../../data.ts';
import { filledFields } from '../../parts/filled-fields.ts';
import { localTime } from '../../parts/local-time.ts';
import { Preview } from '../../parts/preview.tsx';
import { Confirmed, Empty, Loaded, Outcome, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

type Campaign = z.output<typeof campaignSchema>;
type Group = z.output<typeof groupSchema>;
type Template = z.output<typeof templateSchema>;
type Domain = z.output<typeof domainSchema>;

interface CompositionProps {
  campaign: Campaign;
  path: string;
  reload: () => void;
}

/**
 * Fields of the form; they are in the address, so that an author can send it to a person who may send. `at` is in UTC:
 * that person may be in another time zone.
 */
const FIELDS = ['group', 'template', 'from', 'subject', 'perHour', 'at'] as const;
type Choices = Partial<Record<(typeof FIELDS)[number], string>>;

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
              {may('sendMarketing') && <TestMessage choices={choices} />}
              {may('sendCampaign') ? (
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

interface ChoiceFormProps {
  page: string;
  choices: Choices;
  groups: Group[];
  templates: Template[];
  domains: Domain[];
}

function ChoiceForm({ page, choices, groups, templates, domains }: ChoiceFormProps) {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const sending = domains.filter(({ useCase }) => useCase === 'mk').map(({ domain }) => domain);
  return (
    <form
      class="search"
      onSubmit={(event) => {
        event.preventDefault();
        const { view, contact } = location.query;
        const chosen = filledFields(event.currentTarget);
        const { at } = chosen;
        if (at !== undefined) chosen['at'] = new Date(at).toISOString();
        go(href(page, { ...chosen, view, contact }));
      }}
    >
      <label>
        {t('campaigns.group')}
        <select name="group" required>
          {groups.map(({ subscriptionGroupId, name, activeSubscribers }) => (
            <option
              value={subscriptionGroupId}
              key={subscriptionGroupId}
              selected={subscriptionGroupId === choices.group}
            >
              {t('campaigns.groupMembers', { name, count: activeSubscribers })}
            </option>
          ))}
        </select>
      </label>
      <label>
        {t('campaigns.template')}
        <select name="template" required>
          {templates.map(({ templateId, name }) => (
            <option value={templateId} key={templateId} selected={templateId === choices.template}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        {t('messages.sender')}
        <input
          name="from"
          required
          maxLength={500}
          autocomplete="off"
          defaultValue={choices.from ?? ''}
          aria-describedby="from-hint"
        />
        <span id="from-hint" class="small">
          {sending.length === 0
            ? t('campaigns.noDomain')
            : t('campaigns.fromHint', { domains: sending.slice(0, 5).join(', ') })}
        </span>
      </label>
      <label>
        {t('messages.subject')}
        <input
          name="subject"
          maxLength={998}
          autocomplete="off"
          defaultValue={choices.subject ?? ''}
          aria-describedby="subject-hint"
        />
        <span id="subject-hint" class="small">
          {t('campaigns.subjectHint')}
        </span>
      </label>
      <label>
        {t('campaigns.perHour')}
        <input
          name="perHour"
          type="number"
          min={1}
          max={10_000_000}
          defaultValue={choices.perHour ?? ''}
          aria-describedby="per-hour-hint"
        />
        <span id="per-hour-hint" class="small">
          {t('campaigns.perHourHint')}
        </span>
      </label>
      <label>
        {t('campaigns.scheduledAt')}
        <input
          name="at"
          type="datetime-local"
          defaultValue={localTime(Date.parse(choices.at ?? ''))}
          aria-describedby="at-hint"
        />
        <span id="at-hint" class="small">
          {t('campaigns.atHint')}
        </span>
      </label>
      <div class="actions">
        <button type="submit" class="primary">
          {t('campaigns.check')}
        </button>
      </div>
    </form>
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
