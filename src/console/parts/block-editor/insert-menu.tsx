import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useTexts } from '../../texts.ts';
import { Icon } from '../icon/icon.tsx';
import type { IconName } from '../icon/icon-names.ts';
import { placeNextTo } from '../popover.tsx';
import { type BlockType, INSERTABLE, type Insertable } from './design.ts';

export const BLOCK_ICONS: Record<BlockType, IconName> = {
  heading: 'heading',
  text: 'text',
  image: 'image',
  button: 'rectangle-horizontal',
  columns: 'columns-2',
  divider: 'minus',
  spacer: 'move-vertical',
  social: 'share-2',
  footer: 'pin',
};

interface InsertMenuProps {
  /** Next to which it appears. */
  anchor: HTMLElement;
  /** Whether the block goes into a column. */
  isColumn: boolean;
  onChoose: (type: Insertable) => void;
  /** Closed without a choice. */
  onClose: () => void;
}

/** The blocks that can be inserted: typing filters them, arrow keys choose. */
export function InsertMenu({ anchor, isColumn, onChoose, onClose }: InsertMenuProps) {
  const { t } = useTexts();
  const id = useId();
  const layer = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const [search, setSearch] = useState('');
  const [current, setCurrent] = useState(0);
  const close = useRef(onClose);
  close.current = onClose;
  // Before anything else is typed, which is for its field.
  useLayoutEffect(() => {
    const menu = layer.current;
    if (menu === null) return undefined;
    menu.showPopover();
    placeNextTo(anchor, menu);
    field.current?.focus();
    const place = () => placeNextTo(anchor, menu);
    window.addEventListener('resize', place);
    window.addEventListener('scroll', place, true);
    return () => {
      window.removeEventListener('resize', place);
      window.removeEventListener('scroll', place, true);
    };
  }, [anchor]);
  const text = search.trim().toLowerCase();
  const types = INSERTABLE.filter(
    (type) =>
      (type !== 'columns' || !isColumn) &&
      [t(`blocks.type.${type}`), t(`blocks.about.${type}`), type].some((each) =>
        each.toLowerCase().includes(text),
      ),
  );
  const index = Math.min(current, types.length - 1);
  const chosen = types[index];
  const keys = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && types.length > 0) {
      event.preventDefault();
      setCurrent((index + step + types.length) % types.length);
    }
    if (event.key === 'Enter' && chosen !== undefined) {
      event.preventDefault();
      onChoose(chosen);
    }
    if (event.key === 'Tab') {
      event.preventDefault();
      close.current();
    }
  };
  return (
    <div
      class="popover insert-menu"
      popover="auto"
      ref={layer}
      onToggle={({ newState }) => {
        if (newState === 'closed') close.current();
      }}
    >
      <input
        class="input"
        ref={field}
        role="combobox"
        aria-label={t('blocks.insert.search')}
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={chosen === undefined ? undefined : `${id}-${chosen}`}
        placeholder={t('blocks.insert.search')}
        autocomplete="off"
        value={search}
        onInput={({ currentTarget: { value } }) => {
          setSearch(value);
          setCurrent(0);
        }}
        onKeyDown={keys}
      />
      <div class="menu-list" role="listbox" id={id} aria-label={t('blocks.insert.list')}>
        {types.map((type, at) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the focus and its keys
          <div
            class="menu-item insert-item"
            role="option"
            tabIndex={-1}
            id={`${id}-${type}`}
            key={type}
            aria-selected={at === index}
            onPointerMove={() => setCurrent(at)}
            onClick={() => onChoose(type)}
          >
            <Icon name={BLOCK_ICONS[type]} />
            <span>
              <strong>{t(`blocks.type.${type}`)}</strong>
              <span class="small">{t(`blocks.about.${type}`)}</span>
            </span>
          </div>
        ))}
        {types.length === 0 && <p class="small">{t('blocks.insert.none')}</p>}
      </div>
    </div>
  );
}
