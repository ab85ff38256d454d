import type { FunctionComponent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ListedPage } from '../parts/palette/palette.tsx';
import { useNavigation } from '../routing.ts';
import type { ShortcutListProps } from './shortcut-keys.tsx';

/** Keys that begin something without a modifier; the others are for the browser. */
const KEYS = /^[a-z/?]$/;
/** Controls that text is typed into. */
const FIELDS = 'input:not([type=checkbox], [type=radio]), select, textarea, [contenteditable]';

let areOn = true;

/** Turns the shortcuts on or off, as the person has chosen. */
export function setShortcuts(isOn: boolean): void {
  areOn = isOn;
}

interface ShortcutsProps {
  pages: readonly ListedPage[];
  /** Whether the list of shortcuts is open, and what opens and closes it. */
  isListOpen: boolean;
  onList: (isOpen: boolean) => void;
}

/** Keyboard shortcuts of one key or two. Their code is loaded with the first key that may be one. */
export function Shortcuts({ pages, isListOpen, onList }: ShortcutsProps) {
  const { href, go } = useNavigation();
  const [List, setList] = useState<{ Shown: FunctionComponent<ShortcutListProps> } | null>(null);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && KEYS.test(event.key);
      if (!areOn || !isPlain || event.defaultPrevented || !mayBeShortcut(event.target)) return;
      const { key } = event;
      if (key === '/') event.preventDefault();
      void import('./shortcut-keys.tsx').then(({ pressKey }) =>
        pressKey(key, { pages, open: (path) => go(href(path)), list: () => onList(true) }),
      );
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [href, go]);
  useEffect(() => {
    if (isListOpen)
      void import('./shortcut-keys.tsx').then((module) => setList({ Shown: module.ShortcutList }));
  }, [isListOpen]);
  return isListOpen && List !== null ? <List.Shown pages={pages} onClose={() => onList(false)} /> : null;
}

/** Not while text is typed, nor while something lies over the page. */
function mayBeShortcut(target: EventTarget | null): boolean {
  if (target instanceof Element && target.closest(FIELDS) !== null) return false;
  return document.querySelector('dialog[open], :popover-open') === null;
}
