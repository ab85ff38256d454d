import { operate } from '../../api.ts';
import type { DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { fieldText } from '../../parts/field-text.ts';
import { Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

/** A key with its secret, which is shown once. */
export type NewKey = DataOf<'/web-setup/keys', 'post'>;

const SCOPES = ['transactional', 'marketing', 'setup'] as const;
const KINDS = ['test', 'sigv4'] as const;

/** The form for a new key with its restrictions. */
export function KeyCreation({ onCreated }: { onCreated: (key: NewKey) => void }) {
  const { t } = useTexts();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const create = (form: HTMLFormElement) =>
    run(async () => {
      const fields = new FormData(form);
      const body = {
        name: fieldText(fields, 'name'),
        scopes: SCOPES.filter((scope) => fields.getAll('scopes').includes(scope)),
        allowIps: partsOf(fieldText(fields, 'allowIps')),
        allowFrom: partsOf(fieldText(fields, 'allowFrom')),
        allowEssential: fields.get('noEssential') === null,
        strictCompliance: fields.get('strictCompliance') !== null,
        livemode: fields.get('test') === null,
        sigv4: fields.get('sigv4') !== null,
      };
      if (body.scopes.length === 0) throw new Error(t('keys.scopes.missing'));
      onCreated(await operate('post', '/web-setup/keys', { account: accountId, body }));
      return '';
    });
  return (
    <>
      <p class="small">{t('keys.create.hint')}</p>
      <form
        aria-label={t('keys.create')}
        onSubmit={(event) => {
          event.preventDefault();
          void create(event.currentTarget);
        }}
      >
        <label class="field">
          {t('people.name')}
          <input
            class="input"
            name="name"
            required
            maxLength={100}
            autocomplete="off"
            aria-describedby="key-name-hint"
          />
          <span id="key-name-hint" class="small">
            {t('keys.name.hint')}
          </span>
        </label>
        <fieldset class="group">
          <legend>{t('keys.scopes')}</legend>
          {SCOPES.map((scope) => (
            <label key={scope} class="check">
              <input
                class="tick"
                type="checkbox"
                name="scopes"
                value={scope}
                defaultChecked={scope === 'transactional'}
                aria-describedby={`key-${scope}-hint`}
              />{' '}
              {t(`keys.scope.${scope}`)}{' '}
              <span id={`key-${scope}-hint`} class="small">
                {t(`keys.scope.${scope}.hint`)}
              </span>
            </label>
          ))}
        </fieldset>
        {KINDS.map((kind) => (
          <label key={kind} class="check">
            <input class="tick" type="checkbox" name={kind} aria-describedby={`key-${kind}-hint`} />{' '}
            {t(`keys.${kind}.choose`)}{' '}
            <span id={`key-${kind}-hint`} class="small">
              {t(`keys.${kind}.hint`)}
            </span>
          </label>
        ))}
        <details>
          <summary>{t('keys.restrictions')}</summary>
          <label class="field">
            {t('keys.allowIps')}
            <input
              class="input"
              name="allowIps"
              autocomplete="off"
              placeholder="192.0.2.0/24, 2001:db8::/32"
            />
          </label>
          <label class="field">
            {t('keys.allowFrom')}
            <input
              class="input"
              name="allowFrom"
              autocomplete="off"
              autocapitalize="none"
              placeholder="example.com"
            />
          </label>
          <label class="check">
            <input class="tick" type="checkbox" name="noEssential" /> {t('keys.noEssential.choose')}
          </label>
          <label class="check">
            <input class="tick" type="checkbox" name="strictCompliance" /> {t('keys.strict.choose')}
          </label>
        </details>
        <div class="actions">
          <Button
            type="submit"
            kind="primary"
            label={t('keys.createNow')}
            isBusy={outcome?.running === true}
          />
        </div>
      </form>
      <Outcome of={outcome} />
    </>
  );
}

/** The parts of a list that is separated by commas or spaces. */
function partsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((part) => part !== '');
}
