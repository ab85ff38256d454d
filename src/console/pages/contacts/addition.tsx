import { operate } from '../../api.ts';
import { Button } from '../../parts/button.tsx';
import { CreationDrawer } from '../../parts/drawer.tsx';
import { fieldChoice, filledTexts } from '../../parts/field-text.ts';
import { toast } from '../../parts/toast.tsx';
import { Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import type { ListedContact } from './contact-list.tsx';

/** How a person consented, as far as someone can say who enters one contact. */
const METHODS = [
  'single_opt_in',
  'web_form',
  'double_opt_in',
  'other',
] as const satisfies ListedContact['consentMethod'][];

/** Adds one contact, with or without consent to marketing mail: the button, and the form in a drawer. */
export function Addition({ onAdded }: { onAdded: () => void }) {
  const { t } = useTexts();
  return (
    <CreationDrawer title={t('contacts.add')}>
      {(close) => (
        <Form
          onAdded={() => {
            close();
            onAdded();
          }}
        />
      )}
    </CreationDrawer>
  );
}

function Form({ onAdded }: { onAdded: () => void }) {
  const { t } = useTexts();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const add = (fields: FormData) =>
    run(async () => {
      const body = {
        ...filledTexts(fields, 'email', 'phone', 'firstName', 'lastName', 'consentDetails'),
        consentMethod: fieldChoice(fields, 'consentMethod', METHODS) ?? null,
      };
      await operate('post', '/web-setup/contacts', { account: accountId, body });
      toast(t('contacts.added', { contact: body.email ?? body.phone ?? '' }));
      onAdded();
      return '';
    });
  return (
    <>
      <p class="small">{t('contacts.add.hint')}</p>
      <form
        aria-label={t('contacts.add')}
        onSubmit={(event) => {
          event.preventDefault();
          void add(new FormData(event.currentTarget));
        }}
      >
        <label class="field">
          {t('signIn.email')}
          <input class="input" name="email" maxLength={320} autocomplete="off" autocapitalize="none" />
        </label>
        <label class="field">
          {t('contacts.phone')}
          <input class="input" name="phone" type="tel" maxLength={50} autocomplete="off" />
        </label>
        <label class="field">
          {t('groups.signUp.firstName')}
          <input class="input" name="firstName" maxLength={200} autocomplete="off" />
        </label>
        <label class="field">
          {t('groups.signUp.lastName')}
          <input class="input" name="lastName" maxLength={200} autocomplete="off" />
        </label>
        <label class="field">
          {t('groups.consent')}
          <select class="select" name="consentMethod">
            <option value="">{t('contacts.noConsent')}</option>
            {METHODS.map((method) => (
              <option value={method} key={method}>
                {t(`groups.consent.${method}`)}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          {t('groups.consent.details')}
          <input class="input" name="consentDetails" maxLength={2000} autocomplete="off" />
        </label>
        <div class="actions">
          <Button
            type="submit"
            kind="primary"
            label={t('groups.addNow')}
            isBusy={outcome?.running === true}
          />
        </div>
        <Outcome of={outcome} />
      </form>
    </>
  );
}
