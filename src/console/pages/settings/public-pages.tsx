import { useState } from 'preact/hooks';
import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import type { BodyOf, DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { fieldChoice, fieldText } from '../../parts/field-text.ts';
import { toast } from '../../parts/toast.tsx';
import { Card, Loaded, Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { type TextKey, useTexts } from '../../texts.ts';

const PATH = '/web-setup/public-pages';
const TEXTS = '/web-setup/public-pages/texts/{language}';

type Pages = DataOf<typeof PATH>;
type Changes = BodyOf<typeof PATH, 'put'>;
type Language = NonNullable<Pages['language']>;

const LANGUAGES = [
  'de',
  'en',
  'es',
  'fr',
  'it',
  'nl',
  'pl',
  'pt',
  'sv',
  'ja',
] as const satisfies readonly Language[];

/** Parts of the texts by the beginnings of their keys; all others are in the last one. */
const SECTIONS = [
  ['settings.pages.section.preferences', ['preferences']],
  ['settings.pages.section.unsubscribe', ['unsubscribe', 'unsubscribed', 'resubscribed']],
  ['settings.pages.section.signUp', ['signUp']],
  ['settings.pages.section.mail', ['mail']],
  ['settings.pages.section.footer', ['footer']],
  ['settings.pages.section.report', ['report']],
  ['settings.pages.section.other', null],
] as const satisfies readonly (readonly [TextKey, readonly string[] | null])[];
const NAMED_PARTS: readonly string[] = SECTIONS.flatMap(([, parts]) => parts ?? []);

/** Name, logo, colors, fields and texts of the pages for recipients. */
export function PublicPagesCard() {
  const { t } = useTexts();
  const data = useOperation(PATH);
  return (
    <Card title={t('settings.pages')}>
      <Loaded data={data}>{(pages) => <PagesForm pages={pages} onSaved={data.reload} />}</Loaded>
    </Card>
  );
}

function PagesForm({ pages, onSaved }: { pages: Pages; onSaved: () => void }) {
  const { t } = useTexts();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const [language, setLanguage] = useState<Language>(pages.language ?? 'en');
  const isFixed = !may('updatePublicPages');
  const save = (fields: FormData) =>
    run(async () => {
      const orNull = (name: string) => fieldText(fields, name) || null;
      const body: Changes = {
        name: orNull('name'),
        logoUrl: orNull('logoUrl'),
        colors: { accent: orNull('accent'), background: orNull('background') },
        language: fieldChoice(fields, 'language', LANGUAGES) ?? null,
        profileFields: fieldsOf(fieldText(fields, 'profileFields'), pages),
        // Without the fields, which are read from the server, nothing is known about the texts.
        ...(hasTexts(fields) ? { texts: { ...pages.texts, [language]: textsOf(fields) } } : {}),
      };
      await operate('put', PATH, { account: accountId, body });
      onSaved();
      toast(t('settings.pages.saved'));
      return '';
    });
  return (
    <form
      class="card-body settings-form"
      aria-label={t('settings.pages')}
      onSubmit={(event) => {
        event.preventDefault();
        void save(new FormData(event.currentTarget));
      }}
    >
      <p>{t('settings.pages.about')}</p>
      <fieldset class="settings-fields" disabled={isFixed}>
        <label class="field">
          {t('settings.pages.name')}
          <input class="input" name="name" maxLength={200} defaultValue={pages.name ?? ''} />
        </label>
        <label class="field">
          {t('settings.pages.logo')}
          <input
            class="input"
            name="logoUrl"
            type="url"
            maxLength={2000}
            placeholder="https://"
            defaultValue={pages.logoUrl ?? ''}
          />
        </label>
        <ColorField
          name="accent"
          label="settings.pages.accent"
          placeholder="#0b5cad"
          value={pages.colors.accent}
        />
        <ColorField
          name="background"
          label="settings.pages.background"
          placeholder="#f4f6f8"
          value={pages.colors.background}
        />
        <label class="field">
          {t('settings.pages.language')}
          <select class="input" name="language">
            <option value="">{nameOf('en')}</option>
            {LANGUAGES.filter((each) => each !== 'en').map((each) => (
              <option key={each} value={each} selected={each === pages.language}>
                {nameOf(each)}
              </option>
            ))}
          </select>
        </label>
        <label class="field wide">
          {t('settings.pages.fields')}
          <input
            class="input"
            name="profileFields"
            aria-describedby="pages-fields-hint"
            placeholder="firstName, lastName, customFields.city = City"
            defaultValue={pages.profileFields
              .map(({ field, label }) =>
                label === null || label === undefined ? field : `${field} = ${label}`,
              )
              .join(', ')}
          />
        </label>
        <p id="pages-fields-hint" class="small wide">
          {t('settings.pages.fields.hint')}
        </p>
        <label class="field">
          {t('settings.pages.textsIn')}
          <select
            class="input"
            value={language}
            onChange={({ currentTarget: { value } }) =>
              setLanguage(LANGUAGES.find((each) => each === value) ?? 'en')
            }
          >
            {LANGUAGES.map((each) => (
              <option key={each} value={each}>
                {nameOf(each)}
              </option>
            ))}
          </select>
        </label>
        <p class="small wide">{t('settings.pages.texts.hint')}</p>
      </fieldset>
      <fieldset disabled={isFixed}>
        <PageTexts key={language} language={language} own={pages.texts[language] ?? {}} />
      </fieldset>
      {!isFixed && (
        <div class="actions">
          <Button type="submit" kind="primary" label={t('me.save')} isBusy={outcome?.running === true} />
        </div>
      )}
      <Outcome of={outcome} />
    </form>
  );
}

interface ColorFieldProps {
  name: string;
  label: TextKey;
  placeholder: string;
  value: string | null | undefined;
}

function ColorField({ name, label, placeholder, value }: ColorFieldProps) {
  const { t } = useTexts();
  return (
    <label class="field">
      {t(label)}
      <input
        class="input"
        name={name}
        pattern="#[0-9A-Fa-f]{6}"
        maxLength={7}
        placeholder={placeholder}
        defaultValue={value ?? ''}
      />
    </label>
  );
}

/** A field for each text, with the default as its placeholder. */
function PageTexts({ language, own }: { language: Language; own: Readonly<Record<string, string>> }) {
  const { t } = useTexts();
  const data = useOperation(TEXTS, { language });
  return (
    <Loaded data={data}>
      {({ texts }) => (
        <>
          {SECTIONS.map(([title, parts]) => (
            <details key={title}>
              <summary>{t(title)}</summary>
              {Object.entries(texts)
                .filter(([key]) => isIn(key, parts))
                .map(([key, text]) => (
                  <label class="field wide" key={key}>
                    {key}
                    <textarea
                      class="input"
                      name={`text ${key}`}
                      lang={language}
                      rows={text.length > 70 ? 3 : 1}
                      maxLength={1000}
                      placeholder={text}
                      defaultValue={own[key] ?? ''}
                    />
                  </label>
                ))}
            </details>
          ))}
        </>
      )}
    </Loaded>
  );
}

function isIn(key: string, parts: readonly string[] | null): boolean {
  const [part = ''] = key.split('.', 1);
  return parts === null ? !NAMED_PARTS.includes(part) : parts.includes(part);
}

/** The name of a language in that language. */
function nameOf(language: Language): string {
  return new Intl.DisplayNames(language, { type: 'language' }).of(language) ?? language;
}

function hasTexts(fields: FormData): boolean {
  return [...fields.keys()].some((name) => name.startsWith('text '));
}

/** The texts that were entered, by key. */
function textsOf(fields: FormData): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const name of fields.keys()) {
    const text = name.startsWith('text ') ? fieldText(fields, name) : '';
    if (text !== '') texts[name.slice('text '.length)] = text;
  }
  return texts;
}

/** The fields that were entered; labels in other languages remain. */
function fieldsOf(text: string, { profileFields }: Pages): NonNullable<Changes['profileFields']> {
  return text
    .split(',')
    .map((entry) => entry.split('=', 2).map((part) => part.trim()))
    .filter(([field = '']) => field !== '')
    .map(([field = '', label = '']) => ({
      field,
      label: label === '' ? null : label,
      labels: profileFields.find((known) => known.field === field)?.labels ?? {},
    }));
}
