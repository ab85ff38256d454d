import type { FunctionComponent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { CurrentMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { Icon } from '../icon/icon.tsx';
import type { PaletteContentProps } from './palette-content.tsx';
import './palette.css';

/** A page of the navigation. */
export interface ListedPage {
  path: string;
  title: string;
}

interface PaletteProps {
  member: CurrentMember;
  pages: readonly ListedPage[];
}

/** Opens a page or a resource by what the person types, or runs an action: Ctrl and K, or the button. */
export function Palette({ member, pages }: PaletteProps) {
  const { t } = useTexts();
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);
  // Loaded when it is opened for the first time. In an object: a function would be called to get the next state.
  const [loaded, setLoaded] = useState<{ Content: FunctionComponent<PaletteContentProps> } | null>(null);
  const open = () => {
    if (dialog.current === null || dialog.current.open) return;
    setOpen(true);
    dialog.current.showModal();
    if (loaded !== null) return;
    import('./palette-content.tsx').then(
      ({ PaletteContent }) => setLoaded({ Content: PaletteContent }),
      // A new version of the program has other files: the browser loads the application again.
      () => window.location.reload(),
    );
  };
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isShortcut = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'k';
      if (!isShortcut) return;
      event.preventDefault();
      open();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [loaded]);
  return (
    <>
      <button
        type="button"
        class="find"
        aria-keyshortcuts="Control+K"
        title={t('palette.title')}
        onClick={open}
      >
        <Icon name="search" />
        <span>{t('palette.open')}</span>
        <span class="keys" aria-hidden="true">
          <kbd>{t('palette.keys')}</kbd>
        </span>
      </button>
      <dialog
        ref={dialog}
        class="dialog palette"
        aria-label={t('palette.title')}
        onClose={({ currentTarget }) => {
          // The event follows later: the dialog may be open again.
          if (!currentTarget.open) setOpen(false);
        }}
      >
        {isOpen && loaded !== null && (
          <loaded.Content
            key={member.accountId}
            member={member}
            pages={pages}
            close={() => dialog.current?.close()}
          />
        )}
      </dialog>
    </>
  );
}
