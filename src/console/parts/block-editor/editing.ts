import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { EditorView } from 'prosemirror-view';
import type { Block, Design, Insertable } from './design.ts';
import type { Direction, Place } from './model.ts';

/** What the parts of the editor share: the design, what is chosen in it, and what can be done. */
export interface Editing {
  design: Design;
  /** The id of the chosen block; null: none. */
  chosen: string | null;
  isReadOnly: boolean;
  /** The text that has the cursor, or had it while a tool has the focus. */
  text: EditorView | null;
  /** Whether the person has to say what an image shows, or that it only decorates. */
  isUndescribed(block: Block): boolean;
  choose(id: string | null): void;
  /** `about`: see `commit`. */
  change(block: Block, about?: string): void;
  changeDesign(design: Design, about?: string): void;
  setText(view: EditorView | null): void;
  setDescribed(id: string, isDescribed: boolean): void;
  insertAt(type: Insertable, place: Place): void;
  /** Replaces an empty text by a block of another type. */
  replaceBy(type: Insertable, id: string): void;
  moveTo(id: string, place: Place): void;
  moveTowards(id: string, direction: Direction): void;
  duplicate(id: string): void;
  remove(id: string): void;
  /** Opens the menu with what can be inserted. `element`: next to which it appears. */
  openMenu(element: HTMLElement, target: MenuTarget): void;
}

/** What a choice of the menu is for. */
export type MenuTarget = { place: Place } | { replaces: string };

const EditingContext = createContext<Editing | null>(null);
export const EditingProvider = EditingContext.Provider;

export function useEditing(): Editing {
  const editing = useContext(EditingContext);
  if (editing === null) throw new Error('there is no EditingProvider');
  return editing;
}
