import { useEffect, useRef, useState } from 'preact/hooks';
import type * as z from 'zod';
import type { campaignSchema } from '../../../http/api/campaign-schemas.ts';
import type { domainSchema } from '../../../http/api/domains/domain-schemas.ts';
import { callApi } from '../../api.ts';
import { filledFields } from '../../parts/filled-fields.ts';
import { localTime } from '../../parts/local-time.ts';
import { Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

type Campaign = z.output<typeof campaignSchema>;
type Domain = z.output<typeof domainSchema>;

/** What is prepared with a campaign: an author chooses it, and a person who may send sends it. */
export type Choices = NonNullable<Campaign['prepared']>;

/** What can be chosen in a field. */
export interface Selectable {
  options: { id: string; label: string }[];
  /** The chosen option, which need not be among the options; null: none. */
  chosen: { id: string; label: string } | null;
  /** Whether one is stored with the campaign; if it could not be read, nothing is selected instead of the first option. */
  isStored: boolean;
  /** Whether the stored one does not exist any more. */
  isDeleted: boolean;
  /** The text that is searched in the names of options. */
  search: string;
  onSearch(text: string): void;
  /** Whether there are more than the options. */
  hasMore: boolean;
}

interface ChoiceFormProps {
  /** Path of the campaign in the API. */
  path: string;
  choices: Choices;
  groups: Selectable;
  templates: Selectable;
  domains: Domain[];
  /** Called with whether a field differs from what is stored. */
  onChanged: (isChanged: boolean) => void;
  onStored: () => void;
}

/** What is sent, to which group, when; its submission stores it with the campaign. */
export function ChoiceForm(props: ChoiceFormProps) {
  const { path, choices, groups, templates, domains, onChanged, onStored } = props;
  const { t } = useTexts();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const sending = domains.filter(({ useCase }) => useCase === 'mk').map(({ domain }) => domain);
  const form = useRef<HTMLFormElement>(null);
  const shown = useRef('');
  useEffect(() => {
    if (form.current !== null) shown.current = textOf(form.current);
  }, []);
  const store = (fields: HTMLFormElement) =>
    run(async () => {
      const { group, template, from, subject, perHour, at } = filledFields(fields);
      const prepared: Choices = {
        subscriptionGroupId: group,
        templateId: template,
        from,
        subject,
        perHour: perHour === undefined ? undefined : Number(perHour),
        // In UTC: the person who sends it may be in another time zone.
        scheduledAt: at === undefined ? undefined : new Date(at).toISOString(),
      };
      await callApi(path, { method: 'PATCH', account: accountId, body: { prepared } });
      shown.current = textOf(fields);
      onChanged(false);
      onStored();
      return t('campaigns.stored');
    });
  return (
    <form
      class="search"
      ref={form}
      onInput={({ currentTarget }) => onChanged(textOf(currentTarget) !== shown.current)}
      onSubmit={(event) => {
        event.preventDefault();
        void store(event.currentTarget);
      }}
    >
      <SearchedSelect
        name="group"
        label={t('campaigns.group')}
        searchLabel={t('campaigns.searchGroups')}
        of={groups}
      />
      <SearchedSelect
        name="template"
        label={t('campaigns.template')}
        searchLabel={t('campaigns.searchTemplates')}
        of={templates}
      />
      <label class="field">
        {t('messages.sender')}
        <input
          class="input"
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
      <label class="field">
        {t('messages.subject')}
        <input
          class="input"
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
      <label class="field">
        {t('campaigns.perHour')}
        <input
          class="input"
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
      <label class="field">
        {t('campaigns.scheduledAt')}
        <input
          class="input"
          name="at"
          type="datetime-local"
          defaultValue={localTime(Date.parse(choices.scheduledAt ?? ''))}
          aria-describedby="at-hint"
        />
        <span id="at-hint" class="small">
          {t('campaigns.atHint')}
        </span>
      </label>
      <div class="actions">
        <button type="submit" class="button primary" disabled={outcome?.running}>
          {t('campaigns.check')}
        </button>
      </div>
      <Outcome of={outcome} />
    </form>
  );
}

interface SearchedSelectProps {
  name: string;
  label: string;
  searchLabel: string;
  of: Selectable;
}

/** A choice, with a search if there are more options than are listed. */
function SearchedSelect({ name, label, searchLabel, of }: SearchedSelectProps) {
  const { t } = useTexts();
  const { options, chosen, isStored, isDeleted, search, onSearch, hasMore } = of;
  const first = isStored ? chosen : (options[0] ?? null);
  // What is selected remains while a search or new options change the list.
  const [selected, setSelected] = useState(first);
  const current = selected ?? first;
  const listed =
    current === null || options.some(({ id }) => id === current.id) ? options : [current, ...options];
  return (
    <>
      {(hasMore || search !== '') && (
        <label class="field">
          {searchLabel}
          <input
            class="input"
            type="search"
            maxLength={200}
            value={search}
            onInput={({ currentTarget }) => onSearch(currentTarget.value)}
          />
        </label>
      )}
      <label class="field">
        {label}
        <select
          class="select"
          name={name}
          required
          value={current?.id ?? ''}
          // Before the form handles the event: it is rendered again before a change event, with what is selected here.
          onInput={({ currentTarget: { value } }) =>
            setSelected(listed.find(({ id }) => id === value) ?? null)
          }
        >
          {current === null && (
            <option value="">{t(isDeleted ? 'campaigns.deletedChoice' : 'campaigns.noChoice')}</option>
          )}
          {listed.map((each) => (
            <option value={each.id} key={each.id}>
              {each.label}
            </option>
          ))}
        </select>
      </label>
    </>
  );
}

const textOf = (form: HTMLFormElement) => JSON.stringify(filledFields(form));
