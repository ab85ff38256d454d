import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, request, whenSignedOut } from './api.ts';
import {
  adoptPageToken,
  findPageToken,
  finishSignInElsewhere,
  forgetPageToken,
  whenSignedInElsewhere,
} from './page-token.ts';
import { FirstSignInPage, mustAskForCredential } from './pages/first-sign-in.tsx';
import { SignInPage } from './pages/sign-in.tsx';
import { Settings } from './parts/settings.tsx';
import { Failure } from './parts.tsx';
import { NavigationProvider, useBrowserLocation } from './routing.ts';
import type { ConsoleSession } from './session.ts';
import { Shell } from './shell/shell.tsx';
import { browserLanguage, isLanguage, type Language, loadTexts, type Texts, TextsProvider } from './texts.ts';

const LANGUAGE_KEY = 'postrider-language';

/** The application: who is signed in, in which language. */
export function App() {
  const navigation = useBrowserLocation();
  const [session, setSession] = useState<ConsoleSession | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [texts, setTexts] = useState<Texts | null>(null);
  const [isForeign, setForeign] = useState(false);

  const wanted = useRef<Language | null>(null);
  const applyLanguage = (language: Language) => {
    wanted.current = language;
    document.documentElement.lang = language;
    void loadTexts(language).then((loaded) => {
      // The texts of an earlier choice may arrive later.
      if (wanted.current === language) setTexts(loaded);
    });
  };
  const begin = (next: ConsoleSession) => {
    if (next.pageToken !== undefined) adoptPageToken(next.pageToken);
    if (!next.signedIn) forgetPageToken();
    setSession(next);
    const language = next.person?.language;
    if (isLanguage(language)) applyLanguage(language);
  };
  const load = () => {
    setError(null);
    findPageToken()
      .then(() => request<ConsoleSession>('/console/session'))
      .then(begin, (failure: unknown) => {
        if (!(failure instanceof ApiError)) throw failure;
        setError(failure);
      });
  };
  useEffect(() => {
    const stored = localStorage.getItem(LANGUAGE_KEY);
    applyLanguage(isLanguage(stored) ? stored : browserLanguage());
    whenSignedOut(() => {
      forgetPageToken();
      setSession((last) => (last === null ? null : { ...last, signedIn: false, person: null }));
    });
    whenSignedInElsewhere(load);
    setForeign(!finishSignInElsewhere());
    load();
  }, []);

  if (texts === null) return null;
  const choose = (language: Language) => {
    localStorage.setItem(LANGUAGE_KEY, language);
    applyLanguage(language);
    // Without success, the language is that of this browser only.
    if (session?.signedIn)
      void request('/console/me', { method: 'PATCH', body: { language } }).catch(() => {});
  };
  const content =
    error !== null ? (
      <main>
        <Failure error={error} retry={load} />
      </main>
    ) : session === null ? null : session.person === null ? (
      <SignInPage
        methods={session.methods}
        isForeign={isForeign}
        onSignedIn={begin}
        settings={<Settings onLanguage={choose} />}
      />
    ) : mustAskForCredential(session.person) ? (
      <FirstSignInPage
        person={session.person}
        methods={session.methods}
        onDone={load}
        settings={<Settings onLanguage={choose} />}
      />
    ) : (
      <Shell person={session.person} onLanguage={choose} onSignedOut={load} />
    );
  return (
    <TextsProvider value={texts}>
      <NavigationProvider value={navigation}>{content}</NavigationProvider>
    </TextsProvider>
  );
}
