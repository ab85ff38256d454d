import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { html } from '@codemirror/lang-html';
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { EditorState } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';

/** An editor for HTML. Tab leaves it, as it leaves every other field. */
export interface CodeMirrorOptions {
  /** A shadow root: there, styles need no `<style>` elements, which the policy of the pages forbids. */
  root: ShadowRoot;
  label: string;
  value: string;
  readOnly: boolean;
  onChange: (value: string) => void;
}

/** The colors have a contrast of at least 4.5:1 on the background, in both themes. */
const COLORS = HighlightStyle.define([
  { tag: tags.tagName, color: 'light-dark(#0b57b0, #8ebcff)' },
  { tag: tags.attributeName, color: 'light-dark(#7a3e00, #f0b872)' },
  { tag: [tags.attributeValue, tags.string], color: 'light-dark(#11662f, #7fd79a)' },
  { tag: tags.comment, color: 'light-dark(#4d5766, #aab3c0)' },
  { tag: [tags.keyword, tags.propertyName], color: 'light-dark(#7b1fa2, #d8a5ee)' },
]);

const THEME = EditorView.theme({
  '&': {
    height: '100%',
    color: 'var(--text)',
    backgroundColor: 'var(--surface)',
    border: '1px solid var(--line-strong)',
    borderRadius: 'var(--r-md)',
    overflow: 'hidden',
  },
  '&.cm-focused': { outline: '2px solid var(--accent)' },
  '.cm-scroller': { fontFamily: 'var(--mono)', fontSize: 'var(--t-sm)' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { color: 'var(--text-2)', backgroundColor: 'var(--sunken)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
});

/** Shows an editor; returns the function that removes it. */
export function showCodeMirror({ root, label, value, readOnly, onChange }: CodeMirrorOptions): () => void {
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: value,
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        bracketMatching(),
        highlightActiveLine(),
        html(),
        syntaxHighlighting(COLORS),
        THEME,
        EditorView.lineWrapping,
        EditorState.readOnly.of(readOnly),
        // Browsers give the focus to the content anyway; a tool that looks for it in a region that scrolls finds it by this.
        EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
        keymap.of([...defaultKeymap, ...historyKeymap]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(update.state.doc.toString());
        }),
      ],
    }),
  });
  return () => view.destroy();
}
