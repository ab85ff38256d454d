import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import './tabs.css';

interface Tab {
  name: string;
  address: string;
  isCurrent: boolean;
}

/** The views of one thing, each with an address. `label`: of the navigation, for screen readers. */
export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  const bar = useRef<HTMLElement>(null);
  const current = tabs.find(({ isCurrent }) => isCurrent)?.name;
  // On phones the bar may be wider than the screen.
  useEffect(() => {
    const tab = bar.current?.querySelector('[aria-current]');
    tab?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [current]);
  return (
    <nav class="tabs" aria-label={label} ref={bar}>
      {tabs.map(({ name, address, isCurrent }) => (
        <a class="tab" key={name} href={address} aria-current={isCurrent ? 'page' : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}

interface TabListProps<Name extends string> {
  label: string;
  tabs: readonly { name: Name; text: string }[];
  /** Null: none yet. */
  chosen: Name | null;
  onChoose: (name: Name) => void;
  /** The content of the chosen tab. */
  children: ComponentChildren;
}

/** The views of a part of a page, which have no address. Arrow keys move between them. */
export function TabList<Name extends string>(props: TabListProps<Name>) {
  const { label, tabs, chosen, onChoose, children } = props;
  const id = useId();
  const current = Math.max(
    0,
    tabs.findIndex(({ name }) => name === chosen),
  );
  const move = (event: KeyboardEvent & { currentTarget: HTMLElement }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const buttons = [...event.currentTarget.querySelectorAll('button')];
    const from = buttons.findIndex((button) => button === document.activeElement);
    const next = (from + step + buttons.length) % buttons.length;
    buttons[next]?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
        {tabs.map(({ name, text }, index) => (
          <button
            key={name}
            type="button"
            class="tab"
            role="tab"
            id={`${id}-${name}`}
            aria-selected={name === chosen}
            aria-controls={name === chosen ? `${id}-panel` : undefined}
            tabIndex={index === current ? 0 : -1}
            onClick={() => onChoose(name)}
          >
            {text}
          </button>
        ))}
      </div>
      {chosen !== null && (
        <div id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-${chosen}`}>
          {children}
        </div>
      )}
    </>
  );
}
