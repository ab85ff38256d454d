import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { FirstCredential } from '../parts/first-credential.tsx';
import type { ConsoleSession, SessionPerson } from '../session.ts';
import { useTexts } from '../texts.ts';
import { SignInCard } from './sign-in.tsx';

/** The session that continues without this page. */
const LATER_KEY = 'postrider-credential-later';

/** Whether the person must be asked for a first credential before anything else is shown. */
export function mustAskForCredential({ session }: SessionPerson): boolean {
  return session.lacksCredential && localStorage.getItem(LATER_KEY) !== session.id;
}

interface FirstSignInProps {
  person: SessionPerson;
  methods: ConsoleSession['methods'];
  /** The person has a credential, or will add one later. */
  onDone: () => void;
  settings: ComponentChildren;
}

/**
 * What a person who came with a link sees first: how to sign in the next time. After `Later`, the dialog in which people
 * prove who they are offers the same.
 */
export function FirstSignInPage({ person, methods, onDone, settings }: FirstSignInProps) {
  const { t } = useTexts();
  const done = () => {
    localStorage.setItem(LATER_KEY, person.session.id);
    onDone();
  };
  useEffect(() => {
    // Another tab of the session continues, too.
    const follow = ({ key, newValue }: StorageEvent) => {
      if (key === LATER_KEY && newValue === person.session.id) onDone();
    };
    window.addEventListener('storage', follow);
    return () => window.removeEventListener('storage', follow);
  }, [person.session.id]);
  return (
    <SignInCard title={t('first.title')} settings={settings}>
      <p>{t('first.why', { address: person.email })}</p>
      <FirstCredential person={person} methods={methods} onAdded={done} />
      <p class="small">{t('first.later.hint')}</p>
      <p>
        <button class="button" type="button" onClick={done}>
          {t('first.later')}
        </button>
      </p>
    </SignInCard>
  );
}
