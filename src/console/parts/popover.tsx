import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';

interface PopoverProps {
  /** Classes of the button and of the popover. */
  buttonClass: string;
  popoverClass?: string;
  /** What the button shows. */
  button: ComponentChildren;
  /** The name of the button, where it has no text or too little. */
  label?: string;
  /** The id of the button. */
  id?: string;
  isDisabled?: boolean;
  /** The content, which exists while the popover is open. `close`: closes it. */
  children: (close: () => void) => ComponentChildren;
}

/** Distance to the button and to the edges of the window, in px. */
const GAP = 4;

/** A button that opens a layer next to it, which Escape and a click elsewhere close. */
export function Popover(props: PopoverProps) {
  const { buttonClass, popoverClass = '', button, label, isDisabled = false, children } = props;
  const id = useId();
  const opener = useRef<HTMLButtonElement>(null);
  const layer = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const place = () => {
      if (opener.current !== null && layer.current !== null) placeNextTo(opener.current, layer.current);
    };
    if (!isOpen) return undefined;
    place();
    window.addEventListener('resize', place);
    window.addEventListener('scroll', place, true);
    return () => {
      window.removeEventListener('resize', place);
      window.removeEventListener('scroll', place, true);
    };
  }, [isOpen]);
  return (
    <>
      <button
        type="button"
        class={buttonClass}
        id={props.id}
        disabled={isDisabled}
        ref={opener}
        popovertarget={id}
        aria-expanded={isOpen}
        aria-label={label}
        title={label}
      >
        {button}
      </button>
      <div
        id={id}
        popover="auto"
        class={`popover ${popoverClass}`}
        ref={layer}
        onBeforeToggle={({ newState }) => setOpen(newState === 'open')}
      >
        {isOpen && children(() => layer.current?.hidePopover())}
      </div>
    </>
  );
}

/** Below the button, or above it if there is more space; at its right edge if it would leave the window. */
export function placeNextTo(button: HTMLElement, layer: HTMLElement): void {
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = layer;
  const below = at.bottom + GAP;
  const top = below + height <= window.innerHeight ? below : Math.max(GAP, at.top - GAP - height);
  const left = at.left + width + GAP <= window.innerWidth ? at.left : at.right - width;
  layer.style.top = `${top}px`;
  layer.style.left = `${Math.max(GAP, left)}px`;
}
