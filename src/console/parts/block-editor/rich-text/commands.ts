import { toggleMark } from 'prosemirror-commands';
import type { MarkType, NodeType } from 'prosemirror-model';
import { liftListItem, wrapInList } from 'prosemirror-schema-list';
import { type EditorState, NodeSelection, TextSelection } from 'prosemirror-state';
import type { EditorView } from 'prosemirror-view';
import { attributesOf, LINE, type MarkName, RICH, type Variable, variableOf } from './schema.ts';

/* What the tools do to the text that has the cursor, and what they show of it. */

/** Whether a text may have lists. */
export function mayHaveLists({ schema }: EditorState): boolean {
  return schema === RICH;
}

/** Whether a text may have links and be bold. */
export function mayHaveMarks({ schema }: EditorState): boolean {
  return schema !== LINE;
}

export function hasMark({ schema, selection, storedMarks, doc }: EditorState, name: MarkName): boolean {
  const type = schema.marks[name];
  if (type === undefined) return false;
  if (!selection.empty) return doc.rangeHasMark(selection.from, selection.to, type);
  return type.isInSet(storedMarks ?? selection.$from.marks()) !== undefined;
}

export function toggle(view: EditorView, name: Exclude<MarkName, 'link'>): void {
  const type = view.state.schema.marks[name];
  if (type !== undefined) toggleMark(type)(view.state, view.dispatch, view);
  view.focus();
}

export type ListName = 'bulletList' | 'orderedList';

export function isInList({ selection: { $from } }: EditorState, name: ListName): boolean {
  for (let depth = $from.depth; depth > 0; depth--)
    if ($from.node(depth).type === RICH.nodes[name]) return true;
  return false;
}

/** Makes a list of the paragraphs that are chosen, paragraphs of a list, or the other kind of list of it. */
export function toggleList(view: EditorView, name: ListName): void {
  const other = name === 'bulletList' ? 'orderedList' : 'bulletList';
  const { state } = view;
  if (isInList(state, name)) liftListItem(RICH.nodes.listItem)(state, view.dispatch, view);
  else if (isInList(state, other)) changeList(view, RICH.nodes[other], RICH.nodes[name]);
  else wrapInList(RICH.nodes[name])(state, view.dispatch, view);
  view.focus();
}

function changeList(view: EditorView, from: NodeType, to: NodeType): void {
  const { $from } = view.state.selection;
  for (let depth = $from.depth; depth > 0; depth--)
    if ($from.node(depth).type === from) {
      view.dispatch(view.state.tr.setNodeMarkup($from.before(depth), to));
      return;
    }
}

/** The link at the cursor, or the first one that is chosen. */
export function linkAt(state: EditorState): string | null {
  const { selection, doc, schema } = state;
  const type = schema.marks['link'];
  if (type === undefined) return null;
  const [from, to] = selection.empty ? aroundCursor(state, type) : [selection.from, selection.to];
  let href: string | null = null;
  doc.nodesBetween(from, to, (node) => {
    const mark = type.isInSet(node.marks);
    if (mark !== undefined) href ??= String(mark.attrs['href']);
  });
  return href;
}

/** Links what is chosen, the link at the cursor, or else `text`, which is inserted. `href`: null removes the link. */
export function setLink(view: EditorView, href: string | null, text: string): void {
  const { state } = view;
  const { selection, schema } = state;
  const type = schema.marks['link'];
  if (type === undefined) return;
  const [from, to] = selection.empty ? aroundCursor(state, type) : [selection.from, selection.to];
  let { tr } = state;
  if (from === to) {
    if (href === null) return;
    tr = tr.replaceSelectionWith(schema.text(text, [type.create({ href })]), false);
  } else {
    tr = tr.removeMark(from, to, type);
    if (href !== null) tr = tr.addMark(from, to, type.create({ href }));
    tr = tr.setSelection(TextSelection.create(tr.doc, to)).removeStoredMark(type);
  }
  view.dispatch(tr);
  view.focus();
}

/** The part around the cursor that has a mark. */
function aroundCursor({ selection: { $from } }: EditorState, type: MarkType): [number, number] {
  const { parent } = $from;
  const at = $from.pos;
  const mark = type.isInSet($from.marks()) ?? type.isInSet($from.nodeAfter?.marks ?? []);
  if (mark === undefined) return [at, at];
  const start = $from.start();
  let [from, to] = [at, at];
  let offset = start;
  // Consecutive parts with the mark are one, of which that at the cursor counts.
  let open: number | null = null;
  for (let index = 0; index <= parent.childCount; index++) {
    const child = index < parent.childCount ? parent.child(index) : null;
    const isIn = child !== null && mark.isInSet(child.marks);
    if (isIn) open ??= offset;
    else if (open !== null) {
      if (open <= at && at <= offset) [from, to] = [open, offset];
      open = null;
    }
    offset += child?.nodeSize ?? 0;
  }
  return [from, to];
}

/** The variable that is chosen. */
export function chosenVariable({ selection }: EditorState): Variable | null {
  const isVariable = selection instanceof NodeSelection && selection.node.type.name === 'variable';
  return isVariable ? variableOf(selection.node) : null;
}

/** Inserts a variable in place of what is chosen. */
export function insertVariable(view: EditorView, variable: Variable): void {
  const { state } = view;
  const node = state.schema.node(
    'variable',
    attributesOf(variable),
    undefined,
    state.storedMarks ?? state.selection.$from.marks(),
  );
  view.dispatch(state.tr.replaceSelectionWith(node, false).scrollIntoView());
  view.focus();
}

/** Changes the variable that is chosen, which remains chosen. */
export function changeVariable(view: EditorView, variable: Variable): void {
  const { state } = view;
  if (chosenVariable(state) === null) return;
  const { from } = state.selection;
  const { tr } = state;
  tr.setNodeMarkup(from, null, attributesOf(variable));
  view.dispatch(tr.setSelection(NodeSelection.create(tr.doc, from)));
}
