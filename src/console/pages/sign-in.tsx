import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { SignInError } from '../../http/console/oidc-pages.ts';
import { ApiError, request } from '../api.ts';
import { beginSignInElsewhere } from '../page-token.ts';
import { Icon } from '../parts/icon/icon.tsx';
import { Page } from '../parts.tsx';
import { signWithPasskey } from '../passkeys.ts';
import type { ConsoleSession } from '../session.ts';
import { Mark } from '../shell/mark.tsx';
import '../shell/shell.css';
import { useTexts } from '../texts.ts';

/** A link ends with `#/link/` and the token. */
const LINK = /#\/link\/([A-Za-z0-9_-]{20,100})$/;

/** The address after a sign-in with OpenID Connect that failed has the reason. */
const ERROR = 'signInError';
const ERRORS = {
  'provider-failed': 'signIn.oidc.provider-failed',
  'provider-denied': 'signIn.oidc.provider-denied',
  'no-access': 'signIn.oidc.no-access',
  expired: 'signIn.oidc.expired',
} as const satisfies Record<SignInError, string>;

interface SignInProps {
  methods: ConsoleSession['methods'];
  /** Whether the address is the return of a sign-in that was not begun in this tab. */
  isForeign: boolean;
  onSignedIn: (session: ConsoleSession) => void;
  settings: ComponentChildren;
}

/** Signs in with a link: that of the address, or one that is pasted. Alternatively with a password, or elsewhere. */
export function SignInPage({ methods, isForeign, onSignedIn, settings }: SignInProps) {
  const { t, errorText } = useTexts();
  const [error, setError] = useState(isForeign ? t('signIn.oidc.foreign') : '');
  const [link, setLink] = useState<string | null>(null);
  const [isRunning, setRunning] = useState(false);
  const [needsCode, setNeedsCode] = useState(false);

  const signIn = async (path: string, body: unknown, message: (error: ApiError) => string) => {
    setError('');
    setRunning(true);
    try {
      onSignedIn(await request<ConsoleSession>(`/console/session/${path}`, { method: 'POST', body }));
    } catch (failure) {
      if (!(failure instanceof ApiError)) throw failure;
      if (failure.reason === 'TOTP') setNeedsCode(true);
      setError(failure.code === 'NETWORK' ? t('app.error.network') : message(failure));
    } finally {
      setRunning(false);
    }
  };
  const byLink = async (address: string) => {
    const token = LINK.exec(address.trim())?.[1];
    if (token === undefined) return setError(t('signIn.invalid'));
    await signIn('link', { token }, (failure) =>
      failure.status === 401 ? t('signIn.failed') : errorText(failure),
    );
    setLink(null);
  };
  const byPasskey = async () => {
    setError('');
    try {
      const response = await signWithPasskey();
      await signIn('passkey/verify', { response }, errorText);
    } catch (failure) {
      // The browser's reason, such as a closed dialog, or why the server created no challenge.
      const message =
        failure instanceof ApiError ? errorText(failure) : failure instanceof Error ? failure.message : '';
      const isNetwork = failure instanceof ApiError && failure.code === 'NETWORK';
      setError(isNetwork ? t('app.error.network') : t('signIn.passwordFailed', { message }));
    }
  };
  useEffect(() => {
    const { pathname, search } = window.location;
    const reason = new URLSearchParams(search).get(ERROR);
    if (reason === null) return;
    // A reload must not show it again.
    window.history.replaceState(null, '', pathname);
    if (isSignInError(reason)) setError(t(ERRORS[reason]));
  }, []);
  useEffect(() => {
    const use = () => {
      const { hash, pathname } = window.location;
      if (!hash.startsWith('#/link/')) return;
      // The token leaves the address and the history before it is used.
      window.history.replaceState(null, '', pathname);
      // Not used yet: another site can open the address, to sign the person in as its author.
      setLink(hash);
    };
    use();
    window.addEventListener('hashchange', use);
    return () => window.removeEventListener('hashchange', use);
  }, []);

  // Not without surrounding spaces, which may belong to a password.
  const field = (form: HTMLFormElement, name: string): string => {
    const value = new FormData(form).get(name);
    return typeof value === 'string' ? value : '';
  };
  if (link !== null)
    return (
      <SignInCard title={t('signIn.title')} settings={settings}>
        <p>{t('signIn.opened')}</p>
        <p role="status">{isRunning ? t('signIn.running') : ''}</p>
        <p class="actions">
          <button type="button" class="button primary" disabled={isRunning} onClick={() => void byLink(link)}>
            {t('signIn.submit')}
          </button>
          <button class="button" type="button" disabled={isRunning} onClick={() => setLink(null)}>
            {t('app.cancel')}
          </button>
        </p>
      </SignInCard>
    );
  return (
    <SignInCard title={t('signIn.titleTo', { host: window.location.hostname })} settings={settings}>
      <p role="alert" class="outcome bad">
        {error}
      </p>
      <p role="status">{isRunning ? t('signIn.running') : ''}</p>
      {methods.passkey && (
        <p>
          <button type="button" class="button primary" disabled={isRunning} onClick={() => void byPasskey()}>
            <Icon name="key-round" /> {t('signIn.passkey')}
          </button>
        </p>
      )}
      {methods.password && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const form = event.currentTarget;
            const totp = field(form, 'totp');
            const body = {
              email: field(form, 'email'),
              password: field(form, 'password'),
              ...(totp === '' ? {} : { totp }),
            };
            void signIn('password', body, ({ message }) => t('signIn.passwordFailed', { message }));
          }}
        >
          <label class="field">
            {t('signIn.email')}
            <input class="input" name="email" type="email" required autocomplete="username" />
          </label>
          <label class="field">
            {t('signIn.password')}
            <input class="input" name="password" type="password" required autocomplete="current-password" />
          </label>
          {needsCode && (
            <label class="field">
              {t('signIn.totp')}
              <input class="input" name="totp" inputMode="numeric" autocomplete="one-time-code" required />
            </label>
          )}
          <button class="button" type="submit" disabled={isRunning}>
            {t('signIn.byPassword')}
          </button>
        </form>
      )}
      {methods.oidc !== null && (
        <p>
          <button class="button" type="button" onClick={beginSignInElsewhere}>
            {t('signIn.oidc', { name: methods.oidc })}
          </button>
        </p>
      )}
      <details>
        <summary>{t('signIn.haveLink')}</summary>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void byLink(field(event.currentTarget, 'link'));
          }}
        >
          <p>{t('signIn.byLink')}</p>
          <pre tabIndex={0}>postrider operator link EMAIL</pre>
          <p>{t('signIn.invited')}</p>
          <label class="field">
            {t('signIn.link')}
            <input
              class="input"
              name="link"
              type="url"
              required
              autocomplete="off"
              aria-describedby="link-hint"
            />
          </label>
          <p id="link-hint" class="small">
            {t('signIn.link.hint')}
          </p>
          <button type="submit" class="button" disabled={isRunning}>
            {t('signIn.submit')}
          </button>
        </form>
      </details>
    </SignInCard>
  );
}

interface SignInCardProps {
  title: string;
  /** The choice of language and theme, at the end. */
  settings: ComponentChildren;
  children: ComponentChildren;
}

/** A page without the navigation, for people who are not signed in completely. */
export function SignInCard({ title, settings, children }: SignInCardProps) {
  return (
    <main class="sign-in">
      <p class="brand">
        <Mark />
        Postrider
      </p>
      <div class="card">
        <Page title={title}>
          {children}
          {settings}
        </Page>
      </div>
    </main>
  );
}

function isSignInError(reason: string): reason is SignInError {
  return Object.hasOwn(ERRORS, reason);
}
