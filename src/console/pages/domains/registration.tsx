import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { fieldText } from '../../parts/field-text.ts';
import { Loaded, Outcome, Page, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { Steps } from './steps.tsx';

type UseCase = DataOf<'/web-setup/use-cases'>['useCases'][number];

/** The first step, for an account that has domains. */
export function RegistrationPage() {
  const { t } = useTexts();
  return (
    <Page title={t('domains.add')} curl="/web-setup/use-cases">
      <Registration />
    </Page>
  );
}

/** The name of a domain and what it sends; both may be in the address. */
export function Registration() {
  const { t } = useTexts();
  const { may } = useMember();
  const useCases = useOperation('/web-setup/use-cases');
  if (!may('registerDomain')) return <p class="notice">{t('messages.notAllowed')}</p>;
  return (
    <>
      <Steps domainId={null} current="add" status={null} />
      <Loaded data={useCases}>{(listed) => <Form useCases={listed.useCases} />}</Loaded>
    </>
  );
}

function Form({ useCases }: { useCases: UseCase[] }) {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const wanted = useCases.find(({ useCase }) => useCase === location.query['useCase']) ?? useCases[0];
  const regions = new Set(useCases.map(({ region }) => region.code));
  const register = (form: FormData) =>
    run(async () => {
      const { domainId } = await operate('put', '/web-setup/domains', {
        account: accountId,
        body: { domain: fieldText(form, 'domain'), useCaseId: fieldText(form, 'useCaseId') },
      });
      go(href(`domains/${encodeURIComponent(domainId)}`, { step: 'records' }));
      return t('domains.registered');
    });
  return (
    <form
      class="card card-body"
      onSubmit={(event) => {
        event.preventDefault();
        void register(new FormData(event.currentTarget));
      }}
    >
      <label class="field">
        {t('domains.name')}
        <input
          class="input"
          name="domain"
          required
          maxLength={1000}
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          defaultValue={location.query['domain'] ?? ''}
          aria-describedby="domain-hint"
        />
        <span id="domain-hint" class="small">
          {t('domains.name.hint')}
        </span>
      </label>
      <fieldset class="group">
        <legend>{t('domains.useCase')}</legend>
        {useCases.map(({ id, useCase, region, canSendEmail }) => (
          <label class="check" key={id}>
            <input
              class="tick"
              type="radio"
              name="useCaseId"
              value={id}
              defaultChecked={id === wanted?.id}
              required
            />{' '}
            <span>
              <strong>{t(`domains.useCase.${useCase}`)}</strong>
              {regions.size > 1 && ` (${region.name})`}
              <span class="small">
                {' '}
                {t(`domains.useCase.${useCase}.hint`)} {canSendEmail && t('domains.useCase.ready')}
              </span>
            </span>
          </label>
        ))}
      </fieldset>
      <p class="small">{t('domains.useCase.both')}</p>
      <div class="actions">
        <Button
          type="submit"
          kind="primary"
          label={t('domains.register')}
          isBusy={outcome?.running === true}
        />
      </div>
      <Outcome of={outcome} />
    </form>
  );
}
