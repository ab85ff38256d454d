import { operate } from '../../api.ts';
import type { DataOf } from '../../operations.ts';
import { Confirmed, Outcome, useAction } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';

type Control = DataOf<'/web-setup/queue'>['controls'][number];

interface ControlNoticeProps {
  /** Null: none applies. */
  control: Pick<Control, 'action' | 'scope' | 'target' | 'reason' | 'until'> | null;
  /** Scope of the page: a pause of another scope is not resumed here. */
  scope: Control['scope'];
  onChange: () => void;
}

/** Ends pauses and rejections; `onChange` is called after each. */
export function useResume(onChange: () => void) {
  const { t } = useTexts();
  const { outcome, run } = useAction();
  const resume = (scope: Control['scope'], target: string) =>
    run(async () => {
      await operate('delete', '/web-setup/queue/controls/{scope}/{target}', {
        account: null,
        parameters: { scope, target },
      });
      onChange();
      return t('queue.resumed', { target });
    });
  return { outcome, resume };
}

/** The pause or rejection of a destination or an account, with its end. */
export function ControlNotice({ control, scope, onChange }: ControlNoticeProps) {
  const { t, time } = useTexts();
  const { outcome, resume } = useResume(onChange);
  return (
    <>
      {control !== null && (
        <div class="notice">
          <strong>{t(`queue.action.${control.action}`)}</strong>
          <p>{control.reason}</p>
          <p class="small">
            {t('queue.until')}: {control.until === null ? t('queue.until.never') : time(control.until)}
          </p>
          {control.scope === scope && (
            <Confirmed
              label={t('queue.resume')}
              question={t('queue.resume.confirm', { target: control.target })}
              action={() => resume(scope, control.target)}
            />
          )}
        </div>
      )}
      <Outcome of={outcome} />
    </>
  );
}
