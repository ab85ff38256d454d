import { useState } from 'preact/hooks';
import { type Data, useOperation } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { Field } from '../../parts/field.tsx';
import { Card, Empty, Loaded } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import type { Choices } from './draft-saver.ts';
import { SearchedSelect, useListed } from './searched-select.tsx';
import { formatSender, parseSender, rememberSender, type SenderParts } from './sender.ts';
import { VariantFields } from './variant-fields.tsx';

type MailTemplate = DataOf<'/web-setup/templates'>['templates'][number];
type Domain = DataOf<'/web-setup/domains'>['domains'][number];

interface ContentStepProps {
  choices: Choices;
  template: Data<{ template: MailTemplate }>;
  domains: readonly Domain[];
  onChange: (choices: Partial<Choices>) => void;
}

/** What is sent, and who sends it. */
export function ContentStep({ choices, template, domains, onChange }: ContentStepProps) {
  const { t } = useTexts();
  const { subject = '' } = choices;
  return (
    <Card title={t('campaigns.step.content')}>
      <div class="card-body">
        <TemplateChoice choices={choices} template={template} onChange={onChange} />
        <SenderFields from={choices.from ?? ''} domains={domains} onChange={(from) => onChange({ from })} />
        <Field label={t('messages.subject')} hint={t('campaigns.subjectHint')} isOptional>
          {(control) => (
            <input
              {...control}
              class="input"
              maxLength={998}
              autocomplete="off"
              placeholder={template.value?.template.subject ?? ''}
              value={subject}
              onInput={({ currentTarget: { value } }) =>
                onChange({ subject: value.trim() === '' ? undefined : value })
              }
            />
          )}
        </Field>
        <VariantFields choices={choices} onChange={onChange} />
      </div>
    </Card>
  );
}

function TemplateChoice({ choices, template, onChange }: Omit<ContentStepProps, 'domains'>) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const { may } = useMember();
  const { templateId } = choices;
  const { data, searching } = useListed((parameters) => useOperation('/web-setup/templates', parameters));
  const option = ({ templateId: id, name }: MailTemplate) => ({ id, label: name || id });
  return (
    <Loaded data={data}>
      {({ templates, nextKey }) => {
        const usable = templates.filter(({ type }) => type !== 'transactional');
        if (usable.length === 0 && !searching.isSearched && nextKey === undefined)
          return (
            <Empty title={t('templates.empty')} icon="file-text">
              <p>{t('campaigns.noTemplate.hint')}</p>
              <a class="button primary" href={href('templates/new')}>
                {t('templates.new')}
              </a>
            </Empty>
          );
        const listed = usable.find((each) => each.templateId === templateId);
        const read = template.value?.template;
        const chosen = listed ?? (read?.templateId === templateId ? read : undefined);
        return (
          <>
            <SearchedSelect
              label={t('campaigns.template')}
              searchLabel={t('campaigns.searchTemplates')}
              of={{
                options: usable.map(option),
                chosen: chosen === undefined ? null : option(chosen),
                isDeleted: template.error?.status === 404,
                ...searching,
                hasMore: nextKey !== undefined,
                onChoose: (id) => onChange({ templateId: id }),
              }}
            />
            {templateId !== undefined && chosen !== undefined && may('updateTemplate') && (
              <p class="small">
                <a href={href(`templates/${encodeURIComponent(templateId)}`)}>
                  {t('campaigns.editTemplate')}
                </a>
              </p>
            )}
          </>
        );
      }}
    </Loaded>
  );
}

interface SenderFieldsProps {
  from: string;
  domains: readonly Domain[];
  onChange: (from: string) => void;
}

/** The sender: its name, and an address of one of the domains for marketing mail. */
function SenderFields({ from, domains, onChange }: SenderFieldsProps) {
  const { t } = useTexts();
  const { accountId } = useMember();
  // A space at the end of the name is in the field, but not in the sender.
  const [entered, setEntered] = useState(() => parseSender(from));
  const sender = formatSender(entered) === from ? entered : parseSender(from);
  const verified = verifiedDomains(domains);
  const listed =
    sender.domain === '' || verified.includes(sender.domain) ? verified : [sender.domain, ...verified];
  const change = (fields: Partial<SenderParts>) => {
    const next = { ...sender, ...fields };
    setEntered(next);
    onChange(formatSender(next));
  };
  return (
    <fieldset class="group sender" onChange={() => rememberSender(accountId, from)}>
      <legend>{t('messages.sender')}</legend>
      <label class="field">
        {t('campaigns.sender.name')}
        <input
          class="input"
          maxLength={100}
          autocomplete="off"
          value={sender.name}
          onInput={({ currentTarget: { value } }) => change({ name: value })}
        />
      </label>
      <label class="field">
        {t('campaigns.sender.local')}
        <input
          class="input"
          maxLength={64}
          required
          autocomplete="off"
          spellcheck={false}
          value={sender.local}
          onInput={({ currentTarget: { value } }) => change({ local: value.replaceAll(/[\s@<>"]/g, '') })}
        />
      </label>
      <label class="field">
        {t('campaigns.sender.domain')}
        <select
          class="select"
          required
          value={sender.domain}
          onChange={({ currentTarget: { value } }) => change({ domain: value })}
        >
          {sender.domain === '' && <option value="">{t('campaigns.noChoice')}</option>}
          {listed.map((name) => (
            <option key={name} value={name}>
              @{name}
            </option>
          ))}
        </select>
      </label>
      {verified.length === 0 && <p class="hint">{t('campaigns.noDomain')}</p>}
    </fieldset>
  );
}

/** The domains from which marketing mail may be sent. */
export function verifiedDomains(domains: readonly Domain[]): string[] {
  return domains
    .filter(
      ({ status, useCase }) => useCase === 'mk' && (status === 'SUCCESS' || status === 'TEMPORARY_FAILURE'),
    )
    .map(({ domain }) => domain);
}
