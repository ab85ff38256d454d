import { useEffect, useState } from 'preact/hooks';
import { useTexts } from '../texts.ts';
import { CloseButton } from './close-button.tsx';
import { Icon } from './icon/icon.tsx';
import './toast.css';

/** How long a toast is shown; errors stay until they are closed. */
const SHOWN_MS = 5000;
/** How long what waits for it can be taken back. */
const HELD_MS = 6000;
const MAX_TOASTS = 3;

interface Toast {
  number: number;
  text: string;
  isBad: boolean;
  undo: (() => void) | undefined;
  onGone: ((isLeaving: boolean) => Promise<void>) | undefined;
}

interface ToastOptions {
  /** An error, which stays until it is closed. */
  isBad?: boolean;
  /** Reverses what was done. */
  undo?: () => void;
  /** Called when it goes without `undo`, such as because the page is left. */
  onGone?: (isLeaving: boolean) => Promise<void>;
}

let toasts: readonly Toast[] = [];
let count = 0;
let show: (toasts: readonly Toast[]) => void = () => {};

function change(next: readonly Toast[]): void {
  const gone = toasts.filter((each) => !next.includes(each));
  toasts = next;
  show(toasts);
  for (const { onGone } of gone) void onGone?.(false);
}

/** Carries out what waits for toasts; resolves when it is done. `isLeaving`: the page is left now. */
export async function settleToasts(isLeaving: boolean): Promise<void> {
  const waiting = toasts.filter(({ onGone }) => onGone !== undefined);
  toasts = toasts.filter(({ onGone }) => onGone === undefined);
  show(toasts);
  await Promise.all(waiting.map(async ({ onGone }) => onGone?.(isLeaving)));
}

addEventListener('pagehide', () => void settleToasts(true));

/** States the result of a finished action, over the page. Of more than three, the oldest is removed. */
export function toast(text: string, { isBad = false, undo, onGone }: ToastOptions = {}): void {
  change([...toasts, { number: ++count, text, isBad, undo, onGone }].slice(-MAX_TOASTS));
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

function ShownToast({ toast: shown }: { toast: Toast }) {
  const { number, text, isBad, undo, onGone } = shown;
  const { t } = useTexts();
  const [isHeld, setHeld] = useState(false);
  const remove = () => change(toasts.filter((each) => each.number !== number));
  useEffect(() => {
    if (isBad || isHeld) return undefined;
    const timer = window.setTimeout(remove, onGone === undefined ? SHOWN_MS : HELD_MS);
    return () => window.clearTimeout(timer);
  }, [isHeld]);
  return (
    <div
      class={isBad ? 'toast bad' : 'toast'}
      // Not on entering: a toast that appears under the pointer would stay.
      onPointerMove={({ movementX, movementY }) => {
        if (movementX !== 0 || movementY !== 0) setHeld(true);
      }}
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
            shown.onGone = undefined;
            remove();
            undo();
          }}
        >
          {t('app.undo')}
        </button>
      )}
      <CloseButton size="small" onClick={remove} />
    </div>
  );
}
