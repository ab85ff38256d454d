import { useState } from 'preact/hooks';
import { isLanguage, LANGUAGES, type Language, useTexts } from '../texts.ts';
import { applyTheme, storedTheme, THEMES, type Theme } from '../theme.ts';

/** Language and theme. */
export function Settings({ onLanguage }: { onLanguage: (language: Language) => void }) {
  const { t } = useTexts();
  const [theme, setTheme] = useTheme();
  return (
    <div class="settings">
      <LanguageChoice onLanguage={onLanguage} />
      <label class="field">
        {t('app.theme')}
        <select
          class="select"
          value={theme}
          onChange={({ currentTarget: { value } }) =>
            setTheme(THEMES.find((name) => name === value) ?? 'system')
          }
        >
          {THEMES.map((name) => (
            <option value={name} key={name}>
              {t(`app.theme.${name}`)}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

/** The choice of a language. */
export function LanguageChoice({ onLanguage }: { onLanguage: (language: Language) => void }) {
  const { t, language } = useTexts();
  return (
    <label class="field">
      {t('app.language')}
      <select
        class="select"
        value={language}
        onChange={({ currentTarget: { value } }) => {
          if (isLanguage(value)) onLanguage(value);
        }}
      >
        {Object.entries(LANGUAGES).map(([code, name]) => (
          <option value={code} lang={code} key={code}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The theme of this browser; a new one is applied and stored. */
export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(storedTheme);
  return [
    theme,
    (next) => {
      applyTheme(next);
      setTheme(next);
    },
  ];
}
