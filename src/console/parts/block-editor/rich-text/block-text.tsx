import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { EditorView } from 'prosemirror-view';
import type { TextCodec } from './schema.ts';
import { showText, type TextView } from './text-view.ts';

interface BlockTextProps<T> {
  value: T;
  codec: TextCodec<T>;
  label: string;
  placeholder: string;
  isReadOnly: boolean;
  onChange: (value: T) => void;
  onActive: (view: EditorView | null) => void;
  onSlash: (element: HTMLElement) => void;
}

/** A text of a block, edited where it is shown. */
export function BlockText<T>(props: BlockTextProps<T>) {
  const { value, codec, label, placeholder, isReadOnly } = props;
  const host = useRef<HTMLDivElement>(null);
  const text = useRef<TextView | null>(null);
  /** The value that the editor shows: others come from an undo or from the settings. */
  const shown = useRef(value);
  const newest = useRef(props);
  newest.current = props;
  // Before the browser paints: the text of a new block gets the focus then.
  useLayoutEffect(() => {
    if (host.current === null) return undefined;
    shown.current = newest.current.value;
    const view = showText({
      host: host.current,
      doc: codec.read(shown.current),
      label,
      placeholder,
      isReadOnly,
      onChange: (doc) => {
        shown.current = codec.write(doc);
        newest.current.onChange(shown.current);
      },
      onActive: (active) => newest.current.onActive(active),
      onSlash: (element) => newest.current.onSlash(element),
    });
    text.current = view;
    return () => view.remove();
  }, [codec, placeholder, isReadOnly]);
  useEffect(() => {
    if (value === shown.current) return;
    shown.current = value;
    text.current?.replace(codec.read(value));
  }, [value, codec]);
  useEffect(() => text.current?.setLabel(label), [label]);
  return <div class="block-text" ref={host} />;
}
