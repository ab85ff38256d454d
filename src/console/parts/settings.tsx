import { useState } from 'preact/hooks';
import { isLanguage, LANGUAGES, type Language, useTexts } from '../texts.ts';
import { applyTheme, storedTheme, THEMES, type Theme } from '../theme.ts';

/** Language and theme. */
export function Settings({ onLanguage }: { onLanguage: (language: Language) => void }) {
  const { t, language } = useTexts();
  const [theme, setTheme] = useState<Theme>(storedTheme);
  return (
    <div class="settings">
      <label>
        {t('app.language')}
        <select
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
      <label>
        {t('app.theme')}
        <select
          value={theme}
          onChange={({ currentTarget: { value } }) => {
            const next = THEMES.find((name) => name === value) ?? 'system';
            applyTheme(next);
            setTheme(next);
          }}
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
