import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, request, whenUnconfirmed } from '../api.ts';
import { Outcome, useAction } from '../parts.tsx';
import { signWithPasskey } from '../passkeys.ts';
import type { ConsoleSession } from '../session.ts';
import { useTexts } from '../texts.ts';
import { FirstCredential } from './first-credential.tsx';

/**
 * The dialog in which a person proves who they are, with a passkey or a password, before an operation that requires it.
 * The request of the operation is repeated afterwards.
 */
export function SessionConfirmation({ onSignOut }: { onSignOut: () => void }) {
  const { t } = useTexts();
  const dialog = useRef<HTMLDialogElement>(null);
  const answer = useRef<((confirmed: boolean) => void) | null>(null);
  const [session, setSession] = useState<ConsoleSession | null>(null);
  useEffect(() => {
    whenUnconfirmed(async () => {
      // What the person can confirm with may have changed since the sign-in.
      const current = await request<ConsoleSession>('/console/session').catch((error: unknown) => {
        if (!(error instanceof ApiError)) throw error;
        return null;
      });
      if (current === null || dialog.current === null || dialog.current.open) return false;
      setSession(current);
      dialog.current.showModal();
      return new Promise((resolve) => {
        answer.current = resolve;
      });
    });
    return () => whenUnconfirmed(() => Promise.resolve(false));
  }, []);

  const end = (confirmed: boolean) => {
    answer.current?.(confirmed);
    answer.current = null;
    setSession(null);
    dialog.current?.close();
  };
  return (
    <dialog class="dialog" ref={dialog} aria-label={t('confirm.title')} onClose={() => end(false)}>
      {session !== null && <Confirmation session={session} onEnd={end} onSignOut={onSignOut} />}
    </dialog>
  );
}

interface ConfirmationProps {
  session: ConsoleSession;
  onEnd: (confirmed: boolean) => void;
  onSignOut: () => void;
}

function Confirmation({ session: { person, methods }, onEnd, onSignOut }: ConfirmationProps) {
  const { t } = useTexts();
  const { outcome, run } = useAction();
  const confirm = (path: string, body: () => Promise<unknown>) =>
    run(async () => {
      await request(`/console/session/${path}`, { method: 'POST', body: await body() });
      onEnd(true);
      return '';
    });
  const hasPasskey = person !== null && person.passkeys > 0 && methods.passkey;
  const hasPassword = person?.hasPassword === true && person.hasTotp;
  const isFirst = person?.session.lacksCredential === true;
  return (
    <>
      <h2>{t('confirm.title')}</h2>
      <p>{t(isFirst ? 'confirm.first' : hasPasskey || hasPassword ? 'confirm.why' : 'confirm.neither')}</p>
      {isFirst && <FirstCredential person={person} methods={methods} onAdded={() => onEnd(true)} />}
      {hasPasskey && (
        <p>
          <button
            type="button"
            class="button primary"
            onClick={() =>
              void confirm('passkey/confirm', async () => ({ response: await signWithPasskey() }))
            }
          >
            {t('confirm.passkey')}
          </button>
        </p>
      )}
      {hasPassword && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const fields = new FormData(event.currentTarget);
            const body = { password: fields.get('password'), totp: fields.get('totp') };
            void confirm('reauthenticate', () => Promise.resolve(body));
          }}
        >
          <label class="field">
            {t('signIn.password')}
            <input class="input" name="password" type="password" required autocomplete="current-password" />
          </label>
          <label class="field">
            {t('signIn.totp')}
            <input class="input" name="totp" inputMode="numeric" required autocomplete="one-time-code" />
          </label>
          <button class="button" type="submit">
            {t('confirm.password')}
          </button>
        </form>
      )}
      <Outcome of={outcome} />
      <div class="actions">
        {!isFirst && !hasPasskey && !hasPassword && (
          <button class="button" type="button" onClick={onSignOut}>
            {t('app.signOut')}
          </button>
        )}
        <button class="button" type="button" onClick={() => onEnd(false)}>
          {t('app.cancel')}
        </button>
      </div>
    </>
  );
}
