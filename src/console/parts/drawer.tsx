import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useNavigation } from '../routing.ts';
import { CloseButton } from './close-button.tsx';
import { Icon } from './icon/icon.tsx';

interface DrawerProps {
  title: string;
  /** Classes of the button and of the drawer. */
  buttonClass: string;
  drawerClass?: string;
  /** What the button shows; its name is the title. */
  button: ComponentChildren;
  /** Whether the content exists also while the drawer is closed. */
  isKept?: boolean;
  /** Whether it is open from the beginning. */
  isOpenFirst?: boolean;
  /** The content. `close`: closes the drawer. */
  children: (close: () => void) => ComponentChildren;
}

/** A button that opens a drawer at the right. Its first field gets the focus. */
export function Drawer(props: DrawerProps) {
  const {
    title,
    buttonClass,
    drawerClass = '',
    button,
    isKept = false,
    isOpenFirst = false,
    children,
  } = props;
  const drawer = useRef<HTMLDialogElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);
  const close = () => drawer.current?.close();
  const open = () => {
    setOpen(true);
    if (drawer.current?.open === false) drawer.current.showModal();
  };
  useEffect(() => {
    if (isOpen) content.current?.querySelector<HTMLElement>('input, select, textarea')?.focus();
  }, [isOpen]);
  useEffect(() => {
    if (isOpenFirst) open();
  }, [isOpenFirst]);
  return (
    <>
      <button type="button" class={buttonClass} aria-label={title} title={title} onClick={open}>
        {button}
      </button>
      <dialog
        class={`drawer ${drawerClass}`}
        aria-label={title}
        ref={drawer}
        onClose={() => setOpen(false)}
        onClick={({ target, currentTarget }) => {
          // A click next to the drawer is one on its backdrop.
          if (target === currentTarget) close();
        }}
      >
        <DrawerHead title={title} close={close} />
        {(isOpen || isKept) && <div ref={content}>{children(close)}</div>}
      </dialog>
    </>
  );
}

/** A drawer that is open while it exists, such as for the entry that the address names. `onClose`: removes it. */
export function OpenDrawer(props: { title: string; onClose: () => void; children: ComponentChildren }) {
  const { title, onClose, children } = props;
  const drawer = useRef<HTMLDialogElement>(null);
  useEffect(() => drawer.current?.showModal(), []);
  const close = () => drawer.current?.close();
  return (
    <dialog
      class="drawer"
      aria-label={title}
      ref={drawer}
      onClose={onClose}
      onClick={({ target, currentTarget }) => {
        // A click next to the drawer is one on its backdrop.
        if (target === currentTarget) close();
      }}
    >
      <DrawerHead title={title} close={close} />
      {children}
    </dialog>
  );
}

function DrawerHead({ title, close }: { title: string; close: () => void }) {
  return (
    <div class="drawer-head">
      <h2>{title}</h2>
      <CloseButton onClick={close} />
    </div>
  );
}

/**
 * The primary button of a list, which opens the form for a new entry; so does the parameter `create` of the address.
 * `children`: see `DrawerProps`.
 */
export function CreationDrawer({ title, children }: Pick<DrawerProps, 'title' | 'children'>) {
  const { location, href, go } = useNavigation();
  const { create, ...query } = location.query;
  useEffect(() => {
    // The next request to open it is another address.
    if (create !== undefined) go(href(location.segments.join('/'), query), { replace: true });
  }, [create]);
  return (
    <Drawer
      title={title}
      buttonClass="button primary"
      isOpenFirst={create !== undefined}
      button={
        <>
          <Icon name="plus" />
          {title}
        </>
      }
    >
      {children}
    </Drawer>
  );
}
