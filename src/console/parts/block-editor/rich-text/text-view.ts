import { baseKeymap, toggleMark } from 'prosemirror-commands';
import { keymap } from 'prosemirror-keymap';
import { DOMSerializer, Fragment, type Node, type Schema, Slice } from 'prosemirror-model';
import { liftListItem, splitListItem } from 'prosemirror-schema-list';
import { type Command, EditorState, NodeSelection, Plugin, TextSelection } from 'prosemirror-state';
import { Decoration, DecorationSet, EditorView } from 'prosemirror-view';
import { reduceHtml } from './paste.ts';
import { attributesOf, copiedBy, LINE, LINE_CODEC, type MarkName, RICH, splitVariables } from './schema.ts';

/* A text of a block, in ProseMirror. The design has the history: Ctrl+Z is handled by the editor of blocks. */

interface TextViewOptions {
  host: HTMLElement;
  doc: Node;
  label: string;
  placeholder: string;
  isReadOnly: boolean;
  /** Called with each changed document. */
  onChange: (doc: Node) => void;
  /** Called when this text, or what is chosen in it, has changed while it has the focus; null: it lost the focus. */
  onActive: (view: EditorView | null) => void;
  /** `/` in an empty text. */
  onSlash: (element: HTMLElement) => void;
}

/** A text that is shown. */
export interface TextView {
  /** Shows another document, such as after an undo; the cursor stays where the text is the same. */
  replace(doc: Node): void;
  setLabel(label: string): void;
  remove(): void;
}

/** Shows a text that can be edited. */
export function showText(options: TextViewOptions): TextView {
  const { host, doc, placeholder, isReadOnly, onChange, onActive, onSlash } = options;
  let { label } = options;
  const { schema } = doc.type;
  const isParagraph = schema !== RICH;
  const view: EditorView = new EditorView(host, {
    state: EditorState.create({
      doc,
      plugins: [...keymaps(schema), shownSelection()],
    }),
    editable: () => !isReadOnly,
    attributes: ({ doc: shown }) => ({
      role: 'textbox',
      class: 'prose',
      'aria-label': label,
      ...(isEmpty(shown) ? { 'data-hint': placeholder, 'aria-placeholder': placeholder } : {}),
      ...(isParagraph ? {} : { 'aria-multiline': 'true' }),
      ...(isReadOnly ? { 'aria-readonly': 'true', tabindex: '0' } : {}),
    }),
    clipboardSerializer: schema === LINE ? DOMSerializer.fromSchema(LINE) : copiedBy(schema),
    // What was copied here has variables, which the reduction does not know; the schema allows nothing else.
    transformPastedHTML: (html) =>
      html.includes('data-pm-slice') && html.includes('data-variable') ? html : reduceHtml(html),
    transformPasted: (slice) => (schema === LINE ? oneLine(slice) : withVariables(slice)),
    handleTextInput: (current, from, to, text) => {
      if (text === '/' && isEmpty(current.state.doc)) {
        onSlash(current.dom);
        return true;
      }
      return text === '}' && closeVariable(current, from, to);
    },
    handleDOMEvents: {
      focus: (current) => {
        onActive(current);
        return false;
      },
      blur: () => {
        onActive(null);
        return false;
      },
      beforeinput: (_, event) => {
        // The browser's own history knows nothing of the design.
        if (!event.inputType.startsWith('history')) return false;
        event.preventDefault();
        return true;
      },
    },
    dispatchTransaction: (transaction) => {
      view.updateState(view.state.apply(transaction));
      if (transaction.docChanged && transaction.getMeta(REPLACED) !== true) onChange(view.state.doc);
      if (view.hasFocus()) onActive(view);
    },
  });
  return {
    replace: (next) => {
      const from = view.state.doc.content.findDiffStart(next.content);
      const end = view.state.doc.content.findDiffEnd(next.content);
      if (from === null || end === null) return;
      // The same characters may be at both sides of the difference.
      const overlap = Math.max(0, from - Math.min(end.a, end.b));
      const transaction = view.state.tr
        .replace(from, end.a + overlap, next.slice(from, end.b + overlap))
        .setMeta(REPLACED, true);
      view.dispatch(transaction);
    },
    setLabel: (next) => {
      if (next === label) return;
      label = next;
      view.setProps({});
    },
    remove: () => {
      if (view.hasFocus()) onActive(null);
      view.destroy();
    },
  };
}

const REPLACED = 'replaced';

function keymaps(schema: Schema): Plugin[] {
  // Where there is no second line, the browser would insert one.
  const nothing: Command = () => true;
  const { hardBreak } = schema.nodes;
  const lineBreak: Command = (state, dispatch) => {
    if (hardBreak !== undefined)
      dispatch?.(state.tr.replaceSelectionWith(hardBreak.create()).scrollIntoView());
    return true;
  };
  const marks = schema === LINE ? {} : marksByKey(schema);
  return [
    keymap(
      schema === RICH
        ? {
            Enter: splitListItem(RICH.nodes.listItem),
            Backspace: liftFromStart,
            'Shift-Enter': lineBreak,
            ...marks,
          }
        : { Enter: nothing, 'Shift-Enter': lineBreak, 'Mod-Enter': nothing, ...marks },
    ),
    keymap(baseKeymap),
  ];
}

function marksByKey({ marks }: Schema): Record<string, Command> {
  const by = (name: MarkName): Command => {
    const type = marks[name];
    return type === undefined ? () => false : toggleMark(type);
  };
  return {
    'Mod-b': by('bold'),
    'Mod-i': by('italic'),
    'Mod-u': by('underline'),
  };
}

/** Backspace at the beginning of an item: the item becomes a paragraph. */
const liftFromStart: Command = (state, dispatch, view) => {
  const { selection } = state;
  if (!(selection instanceof TextSelection) || selection.$cursor === null) return false;
  return selection.$cursor.parentOffset === 0 && liftListItem(RICH.nodes.listItem)(state, dispatch, view);
};

/** Whether a document has no content at all. */
function isEmpty(doc: Node): boolean {
  if (doc.type.schema !== RICH) return doc.childCount === 0;
  return (
    doc.childCount === 1 && doc.firstChild?.type === RICH.nodes.paragraph && doc.firstChild.childCount === 0
  );
}

/** Shows what is chosen also while another field has the focus, such as that of a link. */
function shownSelection(): Plugin {
  return new Plugin({
    props: {
      decorations: ({ doc, selection }) =>
        selection.empty || selection instanceof NodeSelection
          ? null
          : DecorationSet.create(doc, [
              Decoration.inline(selection.from, selection.to, { class: 'chosen-text' }),
            ]),
    },
  });
}

/** `{{name}}` becomes a variable when its last brace is typed. */
function closeVariable(view: EditorView, from: number, to: number): boolean {
  const { $from } = view.state.selection;
  const before = $from.parent.textBetween(0, $from.parentOffset, undefined, '\ufffc');
  const open = before.lastIndexOf('{{');
  if (open === -1) return false;
  const [variable, ...more] = splitVariables(`${before.slice(open)}}`);
  if (variable === undefined || typeof variable === 'string' || more.length > 0) return false;
  const { schema } = view.state;
  const node = schema.node('variable', attributesOf(variable));
  view.dispatch(view.state.tr.replaceWith(from - (before.length - open), to, node));
  return true;
}

/** Pasted text in which `{{name}}` is a variable. */
function withVariables(slice: Slice): Slice {
  return new Slice(replaceTexts(slice.content), slice.openStart, slice.openEnd);
}

function replaceTexts(fragment: Fragment): Fragment {
  const nodes: Node[] = [];
  fragment.forEach((node) => {
    if (!node.isText) {
      nodes.push(node.copy(replaceTexts(node.content)));
      return;
    }
    for (const part of splitVariables(node.text ?? ''))
      nodes.push(
        typeof part === 'string'
          ? node.type.schema.text(part, node.marks)
          : node.type.schema.node('variable', attributesOf(part), undefined, node.marks),
      );
  });
  return Fragment.from(nodes);
}

/** Pasted text as one line. */
function oneLine(slice: Slice): Slice {
  const text = slice.content.textBetween(0, slice.content.size, ' ').replaceAll(/\s+/g, ' ');
  return new Slice(LINE_CODEC.read(text).content, 0, 0);
}
