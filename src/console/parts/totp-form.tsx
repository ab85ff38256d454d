import type { TotpSetup } from '../../http/console/credential-routes.ts';
import { request } from '../api.ts';
import { Copy } from '../parts.tsx';
import { useTexts } from '../texts.ts';

/** A new secret of an authenticator application, which `confirmTotp` stores. */
export function beginTotp(): Promise<TotpSetup> {
  return request<TotpSetup>('/console/me/totp', { method: 'POST' });
}

export async function confirmTotp({ state }: TotpSetup, code: string): Promise<void> {
  await request('/console/me/totp/verify', { method: 'POST', body: { state, code } });
}

interface TotpFormProps {
  setup: TotpSetup;
  /** `code`: as it was entered. */
  onConfirm: (code: string) => void;
}

/** The secret for the authenticator application, and the code that it shows. */
export function TotpForm({ setup: { secret, address }, onConfirm }: TotpFormProps) {
  const { t } = useTexts();
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const code = new FormData(event.currentTarget).get('code');
        onConfirm(typeof code === 'string' ? code : '');
      }}
    >
      <p>
        <code>{secret}</code> <Copy text={secret} label={t('me.totp.copy')} />
      </p>
      <p>
        <a href={address}>{t('me.totp.open')}</a>
      </p>
      <label class="field">
        {t('signIn.totp')}
        <input
          class="input"
          name="code"
          inputMode="numeric"
          pattern="[0-9 ]{6,7}"
          required
          autocomplete="one-time-code"
        />
      </label>
      <button type="submit" class="button primary">
        {t('me.totp.confirm')}
      </button>
    </form>
  );
}
