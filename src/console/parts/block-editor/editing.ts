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

/** Changes of fields; undefined: the field is removed. */
export type Changes<T> = { readonly [Name in keyof T]?: T[Name] | undefined };

/** A copy with changes. The format has no fields that are undefined. */
export function withChanges<T extends object>(object: T, changes: Changes<T>): T {
  const fields = Object.entries({ ...object, ...changes }).filter(([, value]) => value !== undefined);
  // Sound: only fields that may be absent can be undefined.
  return Object.fromEntries(fields) as T;
}

/** Returns a function that changes fields of a block. `about`: see `commit`, within the block; default: the names of the fields. */
export function useFieldChange<B extends Block>(block: B): (changes: Changes<B>, about?: string) => void {
  const { change } = useEditing();
  return (changes, about = Object.keys(changes).join(' ')) =>
    change(withChanges<Block>(block, changes), about === '' ? '' : `${about} ${block.id}`);
}
