import { useTexts } from '../texts.ts';
import { Icon } from './icon/icon.tsx';
import './stepper.css';

interface Step {
  name: string;
  isDone: boolean;
  /** Undefined: it cannot be opened. */
  address: string | undefined;
}

/** The steps of a task, with links to those that can be opened. `current`: the number of the one that is shown. */
export function Stepper({
  label,
  steps,
  current,
}: {
  label: string;
  steps: readonly Step[];
  current: number;
}) {
  const { t } = useTexts();
  return (
    <nav aria-label={label}>
      <ol class="steps">
        {steps.map(({ name, isDone, address }, index) => {
          const isCurrent = index === current ? 'step' : undefined;
          const content = (
            <>
              <span class="step-mark">{isDone && <Icon name="check" />}</span>
              {name}
              {isDone && <span class="unseen"> {t('domains.step.done')}</span>}
            </>
          );
          return (
            <li key={name} class={isDone ? 'done' : ''}>
              {address === undefined ? (
                <span class="step" aria-current={isCurrent}>
                  {content}
                </span>
              ) : (
                <a class="step" href={address} aria-current={isCurrent}>
                  {content}
                </a>
              )}
            </li>
          );
        })}
      </ol>
    </nav>
  );
}
