import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { EditorView } from 'prosemirror-view';
import { useTexts } from '../../texts.ts';
import { CloseButton } from '../close-button.tsx';
import { Icon } from '../icon/icon.tsx';
import { useMedia } from '../media.ts';
import { Canvas } from './canvas.tsx';
import { type Block, type Design, faultOf, type Insertable, newBlock } from './design.ts';
import { type Editing, EditingProvider, type MenuTarget } from './editing.ts';
import { InsertMenu } from './insert-menu.tsx';
import {
  allBlocks,
  change,
  commit,
  duplicate,
  findBlock,
  type History,
  historyOf,
  insert,
  lastIndex,
  move,
  type Place,
  placeOf,
  placeTowards,
  redo,
  remove,
  type Step,
  undo,
  withNewIds,
} from './model.ts';
import { Settings } from './settings.tsx';
import { LINK_BUTTON, Toolbar } from './toolbar.tsx';
import './block-editor.css';

export interface BlockEditorProps {
  /** The first design; a component with another `key` shows another one. */
  design: Design;
  isReadOnly: boolean;
  /** Called with each changed design, and with the number of blocks that lack something to be sent. */
  onChange: (design: Design, unfinished: number) => void;
}

/** Windows in which the settings are not next to the mail, as in block-editor.css. */
const NARROW = '(width < 75rem)';
const ARROWS = { ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right' } as const;

/** At first, no image lacks a description: those of a stored design without one only decorate. */
const NONE: ReadonlySet<string> = new Set();

/** What gets the focus when the page shows the last change: a text or the grip of a block. */
interface Focus {
  id: string;
  part: 'text' | 'grip';
}

/** Mail as blocks, which are edited where they are shown. */
export function BlockEditor({ design: first, isReadOnly, onChange }: BlockEditorProps) {
  const { t } = useTexts();
  const isNarrow = useMedia(NARROW);
  const root = useRef<HTMLDivElement>(null);
  const sheet = useRef<HTMLDialogElement>(null);
  const [history, setHistory] = useState(() => historyOf(withFooter(first)));
  const newest = useRef(history);
  const [undescribed, setUndescribed] = useState(NONE);
  const [text, setText] = useState<{ view: EditorView | null }>({ view: null });
  const [menu, setMenu] = useState<{ anchor: HTMLElement; target: MenuTarget } | null>(null);
  const [message, setMessage] = useState('');
  const focus = useRef<Focus | null>(null);

  const isUndescribed = (block: Block) =>
    block.type === 'image' && block.alt === '' && undescribed.has(block.id);
  const update = (next: History) => {
    const isChanged = next.design !== newest.current.design;
    newest.current = next;
    setHistory(next);
    if (isChanged) onChange(next.design, unfinishedIn(next.design));
  };
  const unfinishedIn = (design: Design) =>
    allBlocks(design).filter((block) => faultOf(block) !== null || isUndescribed(block)).length;
  // A description of an image does not change the design when it only decorates.
  useEffect(() => {
    if (undescribed !== NONE) onChange(newest.current.design, unfinishedIn(newest.current.design));
  }, [undescribed]);
  useLayoutEffect(() => {
    const wanted = focus.current;
    focus.current = null;
    if (wanted === null) return;
    const block = root.current?.querySelector(`[data-item="${wanted.id}"]`);
    const prose = wanted.part === 'text' ? block?.querySelector<HTMLElement>('.prose') : null;
    const target = prose ?? block?.querySelector<HTMLElement>(':scope > .grip');
    target?.focus({ preventScroll: true });
    block?.scrollIntoView({ block: 'nearest' });
  }, [history]);

  const { design, chosen } = history;
  const name = (block: Block) => t(`blocks.type.${block.type}`);
  const apply = (next: Step, about = '') => update(commit(newest.current, next, about));
  const position = (next: Design, id: string) => {
    const place = placeOf(next, id);
    if (place === null) return '';
    const number = place.index + 1;
    return place.parent === null
      ? t('blocks.position', { number })
      : t('blocks.position.column', { number, column: place.column + 1 });
  };
  const moveTo = (id: string, place: Place, part: Focus | null = { id, part: 'grip' }) => {
    const last = newest.current.design;
    const next = move(last, id, place);
    const block = findBlock(next, id);
    if (next === last || block === null) return;
    focus.current = part;
    apply({ design: next, chosen: id });
    setMessage(t('blocks.moved', { type: name(block), position: position(next, id) }));
  };
  const put = (block: Block, update: (design: Design, block: Block) => Design) => {
    const own = withNewIds(block);
    const next = update(newest.current.design, own);
    if (next === newest.current.design) return;
    focus.current = { id: own.id, part: 'text' };
    if (own.type === 'image') setUndescribed((last) => new Set([...last, own.id]));
    apply({ design: next, chosen: own.id });
    setMessage(t('blocks.inserted', { type: name(own) }));
  };

  const editing: Editing = {
    design,
    chosen,
    isReadOnly,
    text: text.view,
    isUndescribed,
    choose: (id) => {
      const { current } = newest;
      if (current.chosen === id) return;
      update({ ...current, chosen: id });
      // The tools are for the text of the chosen block.
      setText((last) => {
        const block = last.view?.dom.closest('[data-item]');
        return block?.getAttribute('data-item') === id ? last : { view: null };
      });
    },
    change: (block, about = '') => {
      if (isReadOnly) return;
      apply({ design: change(newest.current.design, block), chosen: newest.current.chosen }, about);
    },
    changeDesign: (next, about = '') => {
      if (!isReadOnly) apply({ design: next, chosen: newest.current.chosen }, about);
    },
    setText: (view) => setText({ view }),
    setDescribed: (id, isDescribed) =>
      setUndescribed((last) => {
        const next = new Set(last);
        if (isDescribed) next.delete(id);
        else next.add(id);
        return next;
      }),
    insertAt: (type, place) =>
      put(newBlock(type, t('blocks.button.first')), (last, block) => insert(last, block, place)),
    replaceBy: (type, id) =>
      put(newBlock(type, t('blocks.button.first')), (last, block) => {
        const place = placeOf(last, id);
        return place === null ? last : insert(remove(last, id), block, place);
      }),
    moveTo,
    moveTowards: (id, direction) => {
      const place = placeTowards(newest.current.design, id, direction);
      if (place === null) return setMessage(t('blocks.atEnd'));
      const isInText = document.activeElement?.closest('.prose') !== null;
      return moveTo(id, place, { id, part: isInText ? 'text' : 'grip' });
    },
    duplicate: (id) => {
      const { design: next, id: copy } = duplicate(newest.current.design, id);
      const block = findBlock(next, copy);
      if (copy === id || block === null) return;
      focus.current = { id: copy, part: 'grip' };
      apply({ design: next, chosen: copy });
      setMessage(t('blocks.duplicated', { type: name(block) }));
    },
    remove: (id) => {
      const last = newest.current.design;
      const block = findBlock(last, id);
      const next = remove(last, id);
      if (block === null) return;
      if (next === last) return setMessage(t('blocks.footer.kept'));
      const neighbor = neighborOf(last, next, id);
      if (neighbor !== null) focus.current = { id: neighbor, part: 'grip' };
      apply({ design: next, chosen: neighbor });
      setText({ view: null });
      return setMessage(t('blocks.deleted', { type: name(block) }));
    },
    openMenu: (anchor, target) => setMenu({ anchor, target }),
  };

  const step = (next: History, key: 'blocks.undone' | 'blocks.redone') => {
    if (next === newest.current || isReadOnly) return;
    const active = document.activeElement;
    const { chosen: id } = next;
    // What had the focus may no longer exist.
    if (id !== null && active?.closest('[data-item]') !== null) {
      const isInText = active?.closest('.prose') !== null;
      focus.current = { id, part: isInText ? 'text' : 'grip' };
    }
    update(next);
    setMessage(t(key));
  };

  const keys = (event: KeyboardEvent) => {
    const { target } = event;
    // Layers over the editor have keys of their own.
    const isOver = target instanceof HTMLElement && target.closest('.popover, .dialog, .drawer:not(.sheet)');
    if (!(target instanceof HTMLElement) || isOver) return;
    const isMod = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    const done = () => {
      event.preventDefault();
      event.stopPropagation();
    };
    if (isMod && !event.altKey && (key === 'z' || key === 'y')) {
      done();
      if (key === 'y' || event.shiftKey) step(redo(newest.current), 'blocks.redone');
      else step(undo(newest.current), 'blocks.undone');
      return;
    }
    if (isMod && key === 'k' && target.closest('.prose') !== null) {
      // The search of the console has the same keys elsewhere.
      done();
      document.getElementById(LINK_BUTTON)?.click();
      return;
    }
    if (event.altKey && event.key === 'F10') {
      done();
      root.current
        ?.querySelector<HTMLElement>('.blocks-bar .tool:not([aria-disabled="true"], :disabled)')
        ?.focus();
      return;
    }
    const id = newest.current.chosen;
    // A layer that is open is closed first.
    const isLayerOpen = root.current?.querySelector('.popover:popover-open') !== null;
    if (target.closest('.blocks-bar') !== null && event.key === 'Escape' && id !== null && !isLayerOpen) {
      done();
      focusBlock(id, 'text');
      return;
    }
    if (target.closest('.blocks-body > .blocks-settings') !== null && event.key === 'Escape' && id !== null) {
      done();
      focusBlock(id, 'grip');
      return;
    }
    if (id === null || target.closest('.canvas') === null) return;
    if (event.altKey && event.key === 'Enter') {
      done();
      openSettings();
      return;
    }
    const isGrip = target.classList.contains('grip');
    const arrow = event.key in ARROWS ? ARROWS[event.key as keyof typeof ARROWS] : null;
    if (event.altKey && !isMod && arrow !== null && !isReadOnly) {
      // In a text, some systems move by words with Alt and the other arrow keys.
      if (!isGrip && (arrow === 'left' || arrow === 'right')) return;
      done();
      editing.moveTowards(id, arrow);
      return;
    }
    if (event.key === 'Escape' && !isGrip) {
      done();
      focusBlock(id, 'grip');
      return;
    }
    if (isGrip && !event.altKey) gripKeys(event, id, isMod, done);
  };
  const gripKeys = (event: KeyboardEvent, id: string, isMod: boolean, done: () => void) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      done();
      const list = allBlocks(newest.current.design);
      const at = list.findIndex((block) => block.id === id);
      const next = list[at + (event.key === 'ArrowDown' ? 1 : -1)];
      if (next !== undefined) focusBlock(next.id, 'grip');
    } else if (event.key === 'Enter') {
      done();
      const hasText = root.current?.querySelector(
        `[data-item="${id}"] > .block-body > :not(.view-columns) .prose`,
      );
      if (hasText) focusBlock(id, 'text');
      else openSettings();
    } else if (isReadOnly) return;
    else if (event.key === 'Delete' || event.key === 'Backspace') {
      done();
      editing.remove(id);
    } else if (isMod && event.key.toLowerCase() === 'd') {
      done();
      editing.duplicate(id);
    } else if (event.key === '/' && event.currentTarget instanceof HTMLElement) {
      done();
      const place = placeOf(newest.current.design, id);
      const grip = root.current?.querySelector<HTMLElement>(`[data-grip="${id}"]`);
      const isFooter = findBlock(newest.current.design, id)?.type === 'footer';
      if (place !== null && grip)
        setMenu({ anchor: grip, target: { place: { ...place, index: place.index + (isFooter ? 0 : 1) } } });
    }
  };
  const focusBlock = (id: string, part: Focus['part']) => {
    const block = root.current?.querySelector(`[data-item="${id}"]`);
    const prose = part === 'text' ? block?.querySelector<HTMLElement>('.prose') : null;
    (prose ?? block?.querySelector<HTMLElement>(':scope > .grip'))?.focus();
  };
  const openSettings = () => {
    if (isNarrow) sheet.current?.showModal();
    else
      root.current
        ?.querySelector<HTMLElement>('.blocks-settings > :not(.settings-views) :is(input, select, textarea)')
        ?.focus();
  };
  const closeMenu = (isChosen: boolean) => {
    const anchor = menu?.anchor;
    setMenu(null);
    if (!isChosen) anchor?.focus();
  };

  return (
    <EditingProvider value={editing}>
      <div class="block-editor" ref={root} onKeyDownCapture={keys}>
        {!isReadOnly && (
          <Toolbar
            canUndo={history.past.length > 0}
            canRedo={history.future.length > 0}
            onUndo={() => step(undo(newest.current), 'blocks.undone')}
            onRedo={() => step(redo(newest.current), 'blocks.redone')}
            settings={
              isNarrow && (
                <button
                  type="button"
                  class="tool"
                  aria-label={t('blocks.settings')}
                  title={t('blocks.settings')}
                  onClick={() => sheet.current?.showModal()}
                >
                  <Icon name="sliders-horizontal" />
                </button>
              )
            }
          />
        )}
        <div class="blocks-body">
          <Canvas />
          {isNarrow ? (
            <dialog
              class="drawer sheet"
              aria-label={t('blocks.settings')}
              ref={sheet}
              onClick={({ target, currentTarget }) => {
                // A click next to the sheet is one on its backdrop.
                if (target === currentTarget) sheet.current?.close();
              }}
            >
              <div class="drawer-head">
                <h2>{t('blocks.settings')}</h2>
                <CloseButton onClick={() => sheet.current?.close()} />
              </div>
              <Settings />
            </dialog>
          ) : (
            <Settings />
          )}
        </div>
        {menu !== null && (
          <InsertMenu
            anchor={menu.anchor}
            isColumn={isInColumn(design, menu.target)}
            onChoose={(type: Insertable) => {
              const { target } = menu;
              closeMenu(true);
              if ('place' in target) editing.insertAt(type, target.place);
              else editing.replaceBy(type, target.replaces);
            }}
            onClose={() => closeMenu(false)}
          />
        )}
        <p class="unseen" role="status">
          {message}
        </p>
      </div>
    </EditingProvider>
  );
}

/** The design with a footer, which every mail has. */
function withFooter(design: Design): Design {
  if (lastIndex(design) < design.blocks.length) return design;
  return { ...design, blocks: [...design.blocks, withNewIds({ id: 'footer', type: 'footer' })] };
}

function isInColumn(design: Design, target: MenuTarget): boolean {
  const place = 'place' in target ? target.place : placeOf(design, target.replaces);
  return place !== null && place.parent !== null;
}

/** The block that is chosen after another one was deleted: the one behind it, otherwise the one before. */
function neighborOf(last: Design, next: Design, id: string): string | null {
  const before = allBlocks(last);
  const left = new Set(allBlocks(next).map((block) => block.id));
  const at = before.findIndex((block) => block.id === id);
  const behind = before.slice(at + 1).find((block) => left.has(block.id));
  return (behind ?? before.slice(0, at).findLast((block) => left.has(block.id)))?.id ?? null;
}
