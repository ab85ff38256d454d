import { useState } from 'preact/hooks';
import type { TotpSetup } from '../../http/console/credential-routes.ts';
import { request } from '../api.ts';
import { Outcome, useAction } from '../parts.tsx';
import { createPasskey } from '../passkeys.ts';
import type { ConsoleSession, SessionPerson } from '../session.ts';
import { useTexts } from '../texts.ts';
import { beginTotp, confirmTotp, TotpForm } from './totp-form.tsx';

interface FirstCredentialProps {
  person: SessionPerson;
  methods: ConsoleSession['methods'];
  /** The person has a credential now, and has proved who they are. */
  onAdded: () => void;
}

/** Adds the first passkey, or a password with an authenticator application, of a person who came with a link. */
export function FirstCredential({ person, methods, onAdded }: FirstCredentialProps) {
  const { t } = useTexts();
  const { outcome, run } = useAction();
  const [setup, setSetup] = useState<TotpSetup | null>(null);
  const addPasskey = () =>
    run(async () => {
      await createPasskey(t('first.passkey.name'));
      onAdded();
      return '';
    });
  const setPassword = (password: FormDataEntryValue | null) =>
    run(async () => {
      await request('/console/me/password', { method: 'PUT', body: { password } });
      setSetup(await beginTotp());
      return t('me.totp.enter');
    });
  const confirm = (of: TotpSetup, code: string) =>
    run(async () => {
      await confirmTotp(of, code);
      onAdded();
      return '';
    });
  return (
    <>
      {methods.passkey && (
        <>
          <p>{t('me.passkeys.hint')}</p>
          <p>
            <button
              type="button"
              class="button primary"
              disabled={outcome?.running}
              onClick={() => void addPasskey()}
            >
              {t('first.passkey')}
            </button>
          </p>
        </>
      )}
      {setup === null ? (
        <details open={!methods.passkey}>
          <summary>{t('first.password')}</summary>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              void setPassword(new FormData(event.currentTarget).get('password'));
            }}
          >
            <input type="hidden" autocomplete="username" value={person.email} />
            <label class="field">
              {t('me.password.new')}
              <input class="input" name="password" type="password" required autocomplete="new-password" />
            </label>
            <button class="button" type="submit" disabled={outcome?.running}>
              {t('me.password.set')}
            </button>
          </form>
        </details>
      ) : (
        <TotpForm setup={setup} onConfirm={(code) => void confirm(setup, code)} />
      )}
      <Outcome of={outcome} />
    </>
  );
}
