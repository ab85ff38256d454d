import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type TextKey, useTexts } from '../../texts.ts';
import { Icon } from '../icon/icon.tsx';
import type { IconName } from '../icon/icon-names.ts';
import { Popover } from '../popover.tsx';
import { AddressField } from './address-field.tsx';
import { useEditing } from './editing.ts';
import { findBlock, placeTowards } from './model.ts';
import {
  hasMark,
  insertVariable,
  isInList,
  linkAt,
  mayHaveLists,
  mayHaveMarks,
  setLink,
  toggle,
  toggleList,
} from './rich-text/commands.ts';
import { safeAddress } from './safe-address.ts';
import { VariableList } from './variable-list.tsx';

/** The button that opens the form of a link, which Ctrl+K presses. */
export const LINK_BUTTON = 'blocks-link';

interface ToolbarProps {
  canUndo: boolean;
  canRedo: boolean;
  onUndo: () => void;
  onRedo: () => void;
  /** The button that opens the settings, where they are not next to the mail. */
  settings: ComponentChildren;
}

/** Undo, what can be done to the text that has the cursor, and to the block that is chosen. Arrow keys move in it. */
export function Toolbar({ canUndo, canRedo, onUndo, onRedo, settings }: ToolbarProps) {
  const { t } = useTexts();
  const { design, chosen, moveTowards, duplicate, remove } = useEditing();
  const block = findBlock(design, chosen);
  const isMovable = block !== null && block.type !== 'footer';
  const act = (action: (id: string) => void) => () => {
    if (chosen !== null) action(chosen);
  };
  const mayMove = (direction: 'up' | 'down') =>
    isMovable && chosen !== null && placeTowards(design, chosen, direction) !== null;
  const bar = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined || !(event.target instanceof HTMLButtonElement)) return;
    const buttons = [...(bar.current?.querySelectorAll<HTMLButtonElement>(':scope > div > button') ?? [])];
    const from = buttons.indexOf(event.target);
    if (from === -1) return;
    event.preventDefault();
    buttons[(from + step + buttons.length) % buttons.length]?.focus();
  };
  return (
    <div class="blocks-bar" role="toolbar" aria-label={t('blocks.tools')} ref={bar} onKeyDown={move}>
      <div class="tools">
        <Tool icon="undo-2" label="blocks.undo" keys="Control+Z" isDisabled={!canUndo} onClick={onUndo} />
        <Tool
          icon="redo-2"
          label="blocks.redo"
          keys="Control+Shift+Z"
          isDisabled={!canRedo}
          onClick={onRedo}
        />
      </div>
      <TextTools />
      <div class="tools end">
        <Tool
          icon="arrow-up"
          label="blocks.moveUp"
          keys="Alt+ArrowUp"
          isDisabled={!mayMove('up')}
          onClick={act((id) => moveTowards(id, 'up'))}
        />
        <Tool
          icon="arrow-down"
          label="blocks.moveDown"
          keys="Alt+ArrowDown"
          isDisabled={!mayMove('down')}
          onClick={act((id) => moveTowards(id, 'down'))}
        />
        <Tool
          icon="copy"
          label="blocks.duplicate"
          keys="Control+D"
          isDisabled={!isMovable}
          onClick={act(duplicate)}
        />
        <Tool
          icon="trash"
          label={block?.type === 'footer' ? 'blocks.footer.kept' : 'blocks.delete'}
          keys="Delete"
          isDisabled={!isMovable}
          onClick={act(remove)}
        />
        {settings}
      </div>
    </div>
  );
}

function TextTools() {
  const { t } = useTexts();
  const { text } = useEditing();
  const state = text?.state ?? null;
  const hasMarks = state !== null && mayHaveMarks(state);
  const hasLists = state !== null && mayHaveLists(state);
  const mark = (name: 'bold' | 'italic' | 'underline', icon: IconName, key: string) => (
    <Tool
      icon={icon}
      label={`blocks.${name}`}
      keys={`Control+${key}`}
      isDisabled={!hasMarks}
      isPressed={hasMarks && hasMark(state, name)}
      onClick={() => text !== null && toggle(text, name)}
    />
  );
  const list = (name: 'bulletList' | 'orderedList', icon: IconName) => (
    <Tool
      icon={icon}
      label={`blocks.${name}`}
      isDisabled={!hasLists}
      isPressed={hasLists && isInList(state, name)}
      onClick={() => text !== null && toggleList(text, name)}
    />
  );
  return (
    <div class="tools of-text">
      {mark('bold', 'bold', 'B')}
      {mark('italic', 'italic', 'I')}
      {mark('underline', 'underline', 'U')}
      <Popover
        buttonClass={`tool ${hasMarks && linkAt(state) !== null ? 'pressed' : ''}`}
        popoverClass="tool-form"
        id={LINK_BUTTON}
        button={<Icon name="link" />}
        label={t('blocks.link')}
        isDisabled={!hasMarks}
      >
        {(close) => <LinkForm close={close} />}
      </Popover>
      {list('bulletList', 'list')}
      {list('orderedList', 'list-ordered')}
      <Popover
        buttonClass="tool wide"
        popoverClass="tool-form"
        button={
          <>
            <Icon name="braces" />
            <span class="tool-text">{t('blocks.variable')}</span>
          </>
        }
        label={t('blocks.variable.insert')}
        isDisabled={state === null}
      >
        {(close) => (
          <VariableList
            isLink={hasMarks}
            onChoose={({ name, link }) => {
              close();
              if (text === null) return;
              if (link === null) insertVariable(text, { name, fallback: '' });
              else setLink(text, `{{${name}}}`, link);
            }}
          />
        )}
      </Popover>
    </div>
  );
}

/** The address of the link that is chosen. */
function LinkForm({ close }: { close: () => void }) {
  const { t } = useTexts();
  const { text } = useEditing();
  const [first] = useState(() => (text === null ? null : linkAt(text.state)));
  const [address, setAddress] = useState(first ?? '');
  const [isWrong, setWrong] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector('input')?.focus(), []);
  const apply = (href: string | null) => {
    close();
    if (text !== null) setLink(text, href, address.trim());
  };
  return (
    <form
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        const href = safeAddress(address);
        setWrong(href === null);
        if (href !== null) apply(href);
      }}
    >
      <AddressField
        label={t('blocks.link.address')}
        value={address}
        isWrong={isWrong}
        onChange={(value) => {
          setAddress(value);
          setWrong(false);
        }}
      />
      <div class="actions">
        <button type="submit" class="button primary small">
          {t('blocks.link.apply')}
        </button>
        {first !== null && (
          <button type="button" class="button small" onClick={() => apply(null)}>
            {t('blocks.link.remove')}
          </button>
        )}
      </div>
    </form>
  );
}

interface ToolProps {
  icon: IconName;
  label: TextKey;
  /** The keys that do the same. */
  keys?: string;
  isDisabled?: boolean;
  isPressed?: boolean;
  onClick: () => void;
}

/** A button of the toolbar; a text keeps its cursor when it is pressed. */
function Tool({ icon, label, keys, isDisabled = false, isPressed, onClick }: ToolProps) {
  const { t } = useTexts();
  const text = t(label);
  const shown =
    keys === undefined ? text : `${text} (${keys.replace('Control', 'Ctrl').replace('Arrow', '')})`;
  return (
    <button
      type="button"
      class="tool"
      aria-label={text}
      title={shown}
      aria-keyshortcuts={keys}
      aria-pressed={isPressed}
      aria-disabled={isDisabled}
      onMouseDown={(event) => event.preventDefault()}
      onClick={() => {
        if (!isDisabled) onClick();
      }}
    >
      <Icon name={icon} />
    </button>
  );
}
