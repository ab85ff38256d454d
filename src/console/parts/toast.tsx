import { useEffect, useState } from 'preact/hooks';
import { useTexts } from '../texts.ts';
import { Icon } from './icon/icon.tsx';
import './toast.css';

/** How long a toast is shown; errors stay until they are closed. */
const SHOWN_MS = 5000;
const MAX_TOASTS = 3;

interface Toast {
  number: number;
  text: string;
  isBad: boolean;
  undo: (() => void) | undefined;
}

interface ToastOptions {
  /** An error, which stays until it is closed. */
  isBad?: boolean;
  /** Reverses what was done. */
  undo?: () => void;
}

let toasts: readonly Toast[] = [];
let count = 0;
let show: (toasts: readonly Toast[]) => void = () => {};

function change(next: readonly Toast[]): void {
  toasts = next;
  show(toasts);
}

/** States the result of a finished action, over the page. Of more than three, the oldest is removed. */
export function toast(text: string, { isBad = false, undo }: ToastOptions = {}): void {
  change([...toasts, { number: ++count, text, isBad, undo }].slice(-MAX_TOASTS));
}

/** Where toasts are shown. */
export function Toasts() {
  const [shown, setShown] = useState(toasts);
  useEffect(() => {
    show = setShown;
    return () => {
      show = () => {};
    };
  }, []);
  return (
    <div class="toasts" role="status">
      {shown.map((each) => (
        <ShownToast key={each.number} toast={each} />
      ))}
    </div>
  );
}

function ShownToast({ toast: { number, text, isBad, undo } }: { toast: Toast }) {
  const { t } = useTexts();
  const [isHeld, setHeld] = useState(false);
  const remove = () => change(toasts.filter((each) => each.number !== number));
  useEffect(() => {
    if (isBad || isHeld) return undefined;
    const timer = window.setTimeout(remove, SHOWN_MS);
    return () => window.clearTimeout(timer);
  }, [isHeld]);
  return (
    <div
      class={isBad ? 'toast bad' : 'toast'}
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocusIn={() => setHeld(true)}
      onFocusOut={() => setHeld(false)}
    >
      <Icon name={isBad ? 'circle-x' : 'circle-check'} />
      <p>{text}</p>
      {undo !== undefined && (
        <button
          type="button"
          class="button small"
          onClick={() => {
            remove();
            undo();
          }}
        >
          {t('app.undo')}
        </button>
      )}
      <button
        type="button"
        class="button ghost small"
        aria-label={t('app.close')}
        title={t('app.close')}
        onClick={remove}
      >
        <Icon name="x" />
      </button>
    </div>
  );
}
