import { Icon } from '../parts/icon/icon.tsx';
import { Popover } from '../parts/popover.tsx';
import { LanguageChoice, useTheme } from '../parts/settings.tsx';
import { useNavigation } from '../routing.ts';
import type { SessionPerson } from '../session.ts';
import { type Language, useTexts } from '../texts.ts';
import { THEMES } from '../theme.ts';
import { Tile } from './account-switcher.tsx';

const THEME_ICONS = { system: 'monitor', light: 'sun', dark: 'moon' } as const;

interface PersonMenuProps {
  person: SessionPerson;
  onLanguage: (language: Language) => void;
  /** Opens the list of keyboard shortcuts. */
  onShortcuts: () => void;
  onSignOut: () => void;
}

/** The person who is signed in: profile, language, theme, sign-out. */
export function PersonMenu(props: PersonMenuProps) {
  const { person } = props;
  const { t } = useTexts();
  const name = person.name || person.email;
  return (
    <Popover
      buttonClass="me"
      popoverClass="me-menu"
      button={
        <>
          <Tile name={name} isRound />
          <span class="unseen">{t('app.person')}: </span>
          <span class="cut">{name}</span>
          <Icon name="settings" />
        </>
      }
    >
      {(close) => <Menu {...props} close={close} />}
    </Popover>
  );
}

function Menu(props: PersonMenuProps & { close: () => void }) {
  const { person, onLanguage, onShortcuts, onSignOut, close } = props;
  const { t } = useTexts();
  const { href } = useNavigation();
  const [theme, setTheme] = useTheme();
  return (
    <>
      <p class="menu-head">{person.email}</p>
      <a class="menu-item" href={href('me')} onClick={close}>
        <Icon name="user-cog" />
        {t('page.me')}
      </a>
      <button
        type="button"
        class="menu-item"
        onClick={() => {
          close();
          onShortcuts();
        }}
      >
        <Icon name="keyboard" />
        {t('shortcuts.title')}
      </button>
      <div class="menu-line" />
      <div class="menu-field">
        <LanguageChoice onLanguage={onLanguage} />
      </div>
      <div class="menu-field">
        <div class="field" role="group" aria-label={t('app.theme')}>
          {t('app.theme')}
          <div class="segments">
            {THEMES.map((each) => (
              <button
                type="button"
                class="segment"
                key={each}
                aria-pressed={each === theme}
                aria-label={t(`app.theme.${each}`)}
                title={t(`app.theme.${each}`)}
                onClick={() => setTheme(each)}
              >
                <Icon name={THEME_ICONS[each]} />
              </button>
            ))}
          </div>
        </div>
      </div>
      <div class="menu-line" />
      <button type="button" class="menu-item" onClick={onSignOut}>
        <Icon name="log-out" />
        {t('app.signOut')}
      </button>
    </>
  );
}
