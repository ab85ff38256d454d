import { useEffect, useRef } from 'preact/hooks';
import { Copy } from '../parts.tsx';
import { useTexts } from '../texts.ts';

/** A value that is shown once. */
interface ShownSecret {
  /** Its name, if there are several. */
  label?: string;
  value: string;
  copyLabel: string;
}

interface SecretDialogProps {
  title: string;
  hint?: string;
  secrets: readonly ShownSecret[];
  /** Called when the person has stored the secrets. */
  onStored: () => void;
}

/** Shows secrets above the page, wherever it is scrolled. The Escape key does not close it: they are not shown again. */
export function SecretDialog({ title, hint, secrets, onStored }: SecretDialogProps) {
  const { t } = useTexts();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      class="dialog"
      ref={dialog}
      aria-label={title}
      onCancel={(event) => event.preventDefault()}
      // Browsers close it nevertheless after two presses of the Escape key.
      onClose={onStored}
    >
      <h2>{title}</h2>
      {hint !== undefined && <p class="small">{hint}</p>}
      {secrets.map(({ label, value, copyLabel }) => (
        <section class="secret" key={value} aria-label={label ?? title}>
          {label !== undefined && <h3>{label}</h3>}
          <pre class="value" tabIndex={0}>
            {value}
          </pre>
          <Copy text={value} label={copyLabel} />
        </section>
      ))}
      <div class="actions">
        <button type="button" class="button primary" onClick={() => dialog.current?.close()}>
          {t('app.stored')}
        </button>
      </div>
    </dialog>
  );
}
