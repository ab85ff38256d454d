import { operate } from '../../api.ts';
import { Button } from '../../parts/button.tsx';
import { fieldText } from '../../parts/field-text.ts';
import { Confirmed, Outcome, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import type { CheckedDomain } from './domain.tsx';

const PATH = '/web-setup/domains/{domainId}';

const SWITCHES = ['enableOpenTracking', 'enableClickTracking'] as const;

interface DomainSettingsProps {
  domain: CheckedDomain;
  reload: () => void;
}

/** The host of tracked links, the other use case, deletion. */
export function DomainSettings({ domain, reload }: DomainSettingsProps) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const { domain: name, useCase, trackingDomain } = domain;
  const isFixed = !may('updateDomain');
  const other = useCase === 'tx' ? 'mk' : 'tx';
  const request = { account: accountId, parameters: { domainId: domain.domainId } };
  return (
    <>
      <h2>{t('domains.tracking')}</h2>
      <form
        class="search"
        onSubmit={(event) => {
          event.preventDefault();
          const fields = new FormData(event.currentTarget);
          const host = fieldText(fields, 'trackingDomain');
          const body = {
            trackingDomain: host === '' ? null : host,
            enableOpenTracking: fields.has('enableOpenTracking'),
            enableClickTracking: fields.has('enableClickTracking'),
          };
          void run(async () => {
            await operate('patch', PATH, { ...request, body });
            reload();
            return t('domains.tracking.stored');
          });
        }}
      >
        <label class="field">
          {t('domains.tracking')}
          <input
            class="input"
            name="trackingDomain"
            maxLength={1000}
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            readOnly={isFixed}
            defaultValue={trackingDomain ?? ''}
            placeholder={`link.${name}`}
            aria-describedby="tracking-hint"
          />
          <span id="tracking-hint" class="small">
            {t('domains.tracking.hint', { host: `link.${name}` })}
          </span>
        </label>
        <fieldset class="group" disabled={isFixed}>
          <legend>{t('domains.tracking.defaults')}</legend>
          {SWITCHES.map((field) => (
            <label key={field} class="check">
              <input class="tick" type="checkbox" name={field} defaultChecked={domain[field]} />{' '}
              {t(`domains.tracking.${field}`)}
            </label>
          ))}
        </fieldset>
        {!isFixed && (
          <div class="actions">
            <Button type="submit" label={t('me.save')} isBusy={outcome?.running === true} />
          </div>
        )}
      </form>
      <Outcome of={outcome} />
      <h2>{t('domains.useCase')}</h2>
      <p>{t(`domains.useCase.${useCase}.hint`)}</p>
      {may('registerDomain') && (
        <p>
          <a class="button" href={href('domains/new', { domain: name, useCase: other })}>
            {t('domains.otherUse', { domain: name, useCase: t(`domains.useCase.${other}`) })}
          </a>
        </p>
      )}
      {may('deleteDomain') && (
        <>
          <h2>{t('domains.delete')}</h2>
          <Confirmed
            isDanger
            label={t('domains.delete')}
            question={t('domains.delete.confirm', { domain: name })}
            action={() =>
              run(async () => {
                await operate('delete', PATH, request);
                go(href('domains'));
                return t('app.deleted');
              })
            }
          />
        </>
      )}
    </>
  );
}
