import { useEffect, useRef } from 'preact/hooks';
import { CloseButton } from '../parts/close-button.tsx';
import type { ListedPage } from '../parts/palette/palette.tsx';
import { useNavigation } from '../routing.ts';
import { type TextKey, useTexts } from '../texts.ts';
import './shortcut-keys.css';

/** The second key after `g`, by the path of its page. */
const PAGE_KEYS: Readonly<Record<string, string>> = {
  '': 'o',
  messages: 'm',
  reports: 'r',
  contacts: 'n',
  groups: 'g',
  suppressions: 's',
  campaigns: 'c',
  templates: 't',
  domains: 'd',
  keys: 'k',
  webhooks: 'w',
  reference: 'a',
  queue: 'q',
  inbox: 'i',
  system: 'y',
  'system/accounts': 'u',
  people: 'p',
  audit: 'l',
  settings: 'b',
  me: 'f',
};

/** Keys of their own. */
const OTHER_KEYS: readonly { key: string; text: TextKey }[] = [
  { key: '/', text: 'shortcuts.search' },
  { key: 'j', text: 'shortcuts.next' },
  { key: 'k', text: 'shortcuts.previous' },
  { key: 'x', text: 'shortcuts.choose' },
  { key: 'e', text: 'shortcuts.export' },
  { key: '?', text: 'shortcuts.list' },
];

/** How long the second key is waited for. */
const SEQUENCE_MS = 1500;
const ROWS = 'main .table tbody tr';
const IN_ROW = 'a, button, input, summary';
const EXPORTS = 'main [data-export], main .filters .end :is(a, button), main a[download]';

let beganAt = Number.NEGATIVE_INFINITY;

interface Shortcut {
  /** Those in the navigation of the person. */
  pages: readonly ListedPage[];
  /** Opens a page. */
  open(path: string): void;
  /** Opens the list of shortcuts. */
  list(): void;
}

/** Does what a key stands for. */
export function pressKey(key: string, { pages, open, list }: Shortcut): void {
  const now = performance.now();
  const isSecond = now - beganAt < SEQUENCE_MS;
  beganAt = Number.NEGATIVE_INFINITY;
  if (isSecond) {
    const path = Object.keys(PAGE_KEYS).find((each) => PAGE_KEYS[each] === key);
    if (path === 'me' || pages.some((page) => page.path === path)) open(path ?? '');
    return;
  }
  if (key === 'g') beganAt = now;
  else if (key === '/') focusSearch();
  else if (key === 'j') moveRow(1);
  else if (key === 'k') moveRow(-1);
  else if (key === 'x') currentRow()?.querySelector<HTMLElement>('input[type=checkbox]')?.click();
  else if (key === 'e') document.querySelector<HTMLElement>(EXPORTS)?.click();
  else if (key === '?') list();
}

/** The search of the page, or else that of the top bar. */
function focusSearch(): void {
  const field = document.querySelector<HTMLElement>('main input[type=search]');
  if (field !== null) field.focus();
  else document.querySelector<HTMLElement>('.find')?.click();
}

function currentRow(): Element | null {
  return document.activeElement?.closest(ROWS) ?? null;
}

/** Moves the focus to the link, or the first control, of another row. */
function moveRow(step: 1 | -1): void {
  const rows = [...document.querySelectorAll(ROWS)].filter((row) => row.querySelector(IN_ROW) !== null);
  const at = rows.findIndex((row) => row === currentRow());
  const row = at === -1 ? rows[0] : rows[Math.min(rows.length - 1, Math.max(0, at + step))];
  const target =
    row?.querySelector<HTMLElement>('th a, td:first-child a') ?? row?.querySelector<HTMLElement>(IN_ROW);
  target?.focus();
}

export interface ShortcutListProps {
  pages: readonly ListedPage[];
  onClose: () => void;
}

/** All shortcuts, in a dialog. */
export function ShortcutList({ pages, onClose }: ShortcutListProps) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const close = () => dialog.current?.close();
  return (
    <dialog
      class="dialog shortcuts"
      ref={dialog}
      aria-label={t('shortcuts.title')}
      onClose={onClose}
      onClick={({ target, currentTarget }) => {
        // A click next to the dialog is one on its backdrop.
        if (target === currentTarget) close();
      }}
    >
      <div class="shortcuts-head">
        <h2>{t('shortcuts.title')}</h2>
        <CloseButton onClick={close} />
      </div>
      <dl class="keys-list">
        {OTHER_KEYS.map(({ key, text }) => (
          <div key={key}>
            <dt>{t(text)}</dt>
            <dd>
              <kbd>{key}</kbd>
            </dd>
          </div>
        ))}
        <div>
          <dt>{t('palette.title')}</dt>
          <dd>
            <kbd>{t('palette.keys')}</kbd>
          </dd>
        </div>
        {pages.map(({ path, title }) => (
          <div key={path}>
            <dt>{title}</dt>
            <dd>
              <kbd>g</kbd> <kbd>{PAGE_KEYS[path]}</kbd>
            </dd>
          </div>
        ))}
      </dl>
      <p class="small">
        {t('shortcuts.off')}{' '}
        <a href={href('me')} onClick={close}>
          {t('page.me')}
        </a>
      </p>
    </dialog>
  );
}
