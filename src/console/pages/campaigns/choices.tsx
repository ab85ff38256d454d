import { useEffect, useRef } from 'preact/hooks';
import type * as z from 'zod';
import type { group as groupSchema } from '../../../http/api/contacts/subscription-groups.ts';
import type { domainSchema } from '../../../http/api/domains/domain-schemas.ts';
import type { template as templateSchema } from '../../../http/api/templates.ts';
import { filledFields } from '../../parts/filled-fields.ts';
import { localTime } from '../../parts/local-time.ts';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';

type Group = z.output<typeof groupSchema>;
type Template = z.output<typeof templateSchema>;
type Domain = z.output<typeof domainSchema>;

/**
 * Fields of the form; they are in the address, so that an author can send it to a person who may send. `at` is in UTC:
 * that person may be in another time zone.
 */
export const FIELDS = ['group', 'template', 'from', 'subject', 'perHour', 'at'] as const;
export type Choices = Partial<Record<(typeof FIELDS)[number], string>>;

interface ChoiceFormProps {
  page: string;
  choices: Choices;
  groups: Group[];
  templates: Template[];
  domains: Domain[];
  /** Called with whether a field differs from the choices in the address. */
  onChanged: (isChanged: boolean) => void;
}

/** What is sent, to which group, when; its submission puts the fields into the address. */
export function ChoiceForm({ page, choices, groups, templates, domains, onChanged }: ChoiceFormProps) {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const sending = domains.filter(({ useCase }) => useCase === 'mk').map(({ domain }) => domain);
  const form = useRef<HTMLFormElement>(null);
  const shown = useRef('');
  useEffect(() => {
    if (form.current !== null) shown.current = textOf(form.current);
  }, []);
  return (
    <form
      class="search"
      ref={form}
      onInput={({ currentTarget }) => onChanged(textOf(currentTarget) !== shown.current)}
      onSubmit={(event) => {
        event.preventDefault();
        const { view, contact } = location.query;
        const chosen = filledFields(event.currentTarget);
        const { at } = chosen;
        if (at !== undefined) chosen['at'] = new Date(at).toISOString();
        onChanged(false);
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

const textOf = (form: HTMLFormElement) => JSON.stringify(filledFields(form));
