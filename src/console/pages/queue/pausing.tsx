import { useState } from 'preact/hooks';
import { operate } from '../../api.ts';
import { AccountOptions } from '../../parts/account-options.tsx';
import { Button } from '../../parts/button.tsx';
import { fieldChoice, fieldText } from '../../parts/field-text.ts';
import { Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

const SCOPES = ['destination', 'account', 'site', 'pool'] as const;
const ACTIONS = ['pause', 'bounce'] as const;

interface PausingProps {
  /** The only target. */
  destination?: string;
  account?: string;
  onChange: () => void;
}

/** Pauses mail, or rejects the mail to a destination. */
export function Pausing({ destination, account, onChange }: PausingProps) {
  const { t } = useTexts();
  const { person } = useMember();
  const initial = account === undefined ? 'destination' : 'account';
  const [scope, setScope] = useState<(typeof SCOPES)[number]>(initial);
  const { outcome, run } = useAction();
  const pause = (form: HTMLFormElement) =>
    run(async () => {
      const fields = new FormData(form);
      const target = destination ?? account ?? fieldText(fields, 'target');
      const until = fieldText(fields, 'until');
      const action = fieldChoice(fields, 'action', ACTIONS) ?? 'pause';
      await operate('post', '/web-setup/queue/controls', {
        account: null,
        body: {
          action,
          scope,
          target,
          reason: fieldText(fields, 'reason'),
          until: until === '' ? null : new Date(until).toISOString(),
        },
      });
      form.reset();
      setScope(initial);
      onChange();
      return t(action === 'bounce' ? 'queue.rejected' : 'queue.paused', { target });
    });
  return (
    <>
      <form
        class="search"
        aria-label={t('queue.pause')}
        onSubmit={(event) => {
          event.preventDefault();
          void pause(event.currentTarget);
        }}
      >
        {destination === undefined && account === undefined && (
          <>
            <label class="field">
              {t('queue.scope')}
              <select
                class="select"
                value={scope}
                onChange={({ currentTarget: { value } }) =>
                  setScope(SCOPES.find((name) => name === value) ?? 'destination')
                }
              >
                {SCOPES.map((name) => (
                  <option value={name} key={name}>
                    {t(`queue.scope.${name}`)}
                  </option>
                ))}
              </select>
            </label>
            <label class="field">
              {t('queue.target')}
              {scope === 'account' ? (
                <select class="select" name="target" required>
                  <AccountOptions of={person} />
                </select>
              ) : (
                <input
                  class="input"
                  name="target"
                  required
                  maxLength={300}
                  autocapitalize="none"
                  spellcheck={false}
                />
              )}
            </label>
          </>
        )}
        {scope === 'destination' && (
          <label class="field">
            {t('queue.action')}
            <select class="select" name="action">
              {ACTIONS.map((name) => (
                <option value={name} key={name}>
                  {t(`queue.do.${name}`)}
                </option>
              ))}
            </select>
          </label>
        )}
        <label class="field">
          {t('queue.reason')}
          <input class="input" name="reason" required maxLength={200} />
        </label>
        <label class="field">
          {t('queue.until')}
          <input class="input" name="until" type="datetime-local" />
        </label>
        <div class="actions">
          <Button type="submit" label={t('queue.pauseNow')} isBusy={outcome?.running === true} />
        </div>
      </form>
      <Outcome of={outcome} />
    </>
  );
}
