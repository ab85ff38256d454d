import { DOMSerializer, type MarkSpec, Node, type NodeSpec, Schema } from 'prosemirror-model';
import { VARIABLE as VARIABLES } from '../../../../mail/blocks/variable.ts';
import type { Inline, RichText } from '../design.ts';
import { safeAddress } from '../safe-address.ts';

/*
 * What a text of a block may contain, with the names of the format of designs. Nothing else can be typed, pasted or read:
 * ProseMirror drops what these rules do not name. Links have no `href` in the editor, so that a click places the cursor;
 * copied text has it.
 */

const VARIABLE: NodeSpec = {
  group: 'inline',
  inline: true,
  atom: true,
  draggable: false,
  attrs: { name: { validate: 'string' }, default: { default: null, validate: 'string|null|undefined' } },
  toDOM: (node) => {
    const { name, fallback } = variableOf(node);
    return [
      'span',
      { class: 'pill', 'data-variable': name, ...(fallback === '' ? {} : { 'data-default': fallback }) },
      fallback === '' ? name : `${name} · ${fallback}`,
    ];
  },
  parseDOM: [
    {
      tag: 'span[data-variable]',
      getAttrs: (element) => ({
        name: element.getAttribute('data-variable') ?? '',
        default: element.getAttribute('data-default'),
      }),
    },
  ],
  leafText: (node) => variableText(variableOf(node)),
};

const HARD_BREAK: NodeSpec = {
  group: 'inline',
  inline: true,
  selectable: false,
  parseDOM: [{ tag: 'br' }],
  toDOM: () => ['br'],
  leafText: () => '\n',
};

const COLOR = /^#[0-9A-Fa-f]{6}$/;

const MARKS = {
  link: {
    attrs: { href: { validate: 'string' } },
    inclusive: false,
    parseDOM: [
      {
        tag: 'a[href]',
        getAttrs: (element: HTMLElement) => {
          const href = safeAddress(element.getAttribute('href') ?? '');
          return href === null ? false : { href };
        },
      },
    ],
    toDOM: (mark) => ['span', { class: 'linked', title: mark.attrs['href'] }],
  },
  bold: { parseDOM: [{ tag: 'strong' }, { tag: 'b' }], toDOM: () => ['strong'] },
  italic: { parseDOM: [{ tag: 'em' }, { tag: 'i' }], toDOM: () => ['em'] },
  underline: { parseDOM: [{ tag: 'u' }], toDOM: () => ['u'] },
  strikethrough: { parseDOM: [{ tag: 's' }], toDOM: () => ['s'] },
  color: {
    attrs: { color: { validate: 'string' } },
    parseDOM: [
      {
        tag: 'span[data-color]',
        getAttrs: (element: HTMLElement) => {
          const color = element.getAttribute('data-color') ?? '';
          return COLOR.test(color) ? { color } : false;
        },
      },
    ],
    // An element: the policy of the page forbids styles in markup, but not those that a script sets.
    toDOM: (mark) => {
      const dom = document.createElement('span');
      const color = String(mark.attrs['color']);
      dom.dataset['color'] = color;
      dom.style.color = color;
      return { dom, contentDOM: dom };
    },
  },
} satisfies Record<string, MarkSpec>;

export type MarkName = keyof typeof MARKS;

const INLINE = { text: { group: 'inline' }, variable: VARIABLE, hardBreak: HARD_BREAK };

/** Paragraphs and lists. The tools make no lists in lists, which the format has. */
export const RICH = new Schema({
  nodes: {
    doc: { content: 'block+' },
    paragraph: { group: 'block', content: 'inline*', parseDOM: [{ tag: 'p' }], toDOM: () => ['p', 0] },
    bulletList: {
      group: 'block list',
      content: 'listItem+',
      parseDOM: [{ tag: 'ul' }],
      toDOM: () => ['ul', 0],
    },
    orderedList: {
      group: 'block list',
      attrs: { start: { default: 1, validate: 'number' } },
      content: 'listItem+',
      parseDOM: [{ tag: 'ol' }],
      toDOM: ({ attrs: { start } }) => ['ol', { start }, 0],
    },
    listItem: {
      content: '(paragraph | list)+',
      defining: true,
      parseDOM: [{ tag: 'li' }],
      toDOM: () => ['li', 0],
    },
    ...INLINE,
  },
  marks: MARKS,
});

/** The content of a paragraph, such as of a heading. */
export const PARAGRAPH = new Schema({ nodes: { doc: { content: 'inline*' }, ...INLINE }, marks: MARKS });

/** A text without marks, such as the label of a button. */
export const LINE = new Schema({
  nodes: { doc: { content: 'inline*' }, text: { group: 'inline' }, variable: VARIABLE },
});

/** Writes what is copied: links with their address, as other programs read them. */
export function copiedBy(schema: Schema): DOMSerializer {
  return new DOMSerializer(DOMSerializer.nodesFromSchema(schema), {
    ...DOMSerializer.marksFromSchema(schema),
    link: (mark) => ['a', { href: mark.attrs['href'] }],
  });
}

/** A value that is inserted for each recipient. `fallback`: for those without one; '': none. */
export interface Variable {
  name: string;
  fallback: string;
}

/** The variable of a node `variable`. */
export function variableOf({ attrs }: Node): Variable {
  return { name: String(attrs['name']), fallback: String(attrs['default'] ?? '') };
}

/** The attributes of a node `variable`. */
export function attributesOf({ name, fallback }: Variable): { name: string; default: string | null } {
  return { name, default: fallback === '' ? null : fallback };
}

/** As it is written in a template. */
export function variableText({ name, fallback }: Variable): string {
  return fallback === '' ? `{{${name}}}` : `{{${name}|${fallback}}}`;
}

/** What a default cannot contain: it would end the variable, or the attribute in which it is inserted. */
const NOT_IN_DEFAULT = /[<>"{}|\r\n]/g;

/** A default that the format accepts. */
export function cleanDefault(text: string): string {
  return text.replaceAll(NOT_IN_DEFAULT, '').slice(0, 200);
}

/** The parts of a text in which `{{name|default}}` is a variable. */
export function splitVariables(text: string): (string | Variable)[] {
  const parts: (string | Variable)[] = [];
  let end = 0;
  for (const match of text.matchAll(VARIABLES)) {
    const [whole, name = '', fallback = ''] = match;
    if (match.index > end) parts.push(text.slice(end, match.index));
    parts.push({ name, fallback: cleanDefault(fallback.trim()) });
    end = match.index + whole.length;
  }
  if (end < text.length) parts.push(text.slice(end));
  return parts;
}

/** How a value of the design is a document of the editor. */
export interface TextCodec<T> {
  schema: Schema;
  read(value: T): Node;
  write(doc: Node): T;
}

/** The text of a block of text. What the editor cannot show, such as of a later version, is left out. */
export const RICH_CODEC: TextCodec<RichText> = {
  schema: RICH,
  read: (value) => {
    const content = value.content.length === 0 ? [{ type: 'paragraph' }] : value.content;
    return (
      checked(() => Node.fromJSON(RICH, { type: 'doc', content })) ??
      RICH.node('doc', null, RICH.node('paragraph'))
    );
  },
  // Sound: the schema has the names and the structure of the format.
  write: (doc) => flattened(doc).toJSON() as RichText,
};

/** The content of a heading or of the footer. */
export const INLINE_CODEC: TextCodec<Inline[]> = {
  schema: PARAGRAPH,
  read: (content) =>
    checked(() => Node.fromJSON(PARAGRAPH, { type: 'doc', content })) ?? PARAGRAPH.node('doc'),
  write: (doc) => (doc.toJSON() as { content?: Inline[] }).content ?? [],
};

/** A text with variables in braces. */
export const LINE_CODEC: TextCodec<string> = {
  schema: LINE,
  read: (text) =>
    LINE.node(
      'doc',
      null,
      splitVariables(text).map((part) =>
        typeof part === 'string' ? LINE.text(part) : LINE.node('variable', attributesOf(part)),
      ),
    ),
  write: (doc) => doc.textBetween(0, doc.content.size),
};

function checked(read: () => Node): Node | null {
  try {
    const node = read();
    node.check();
    return node;
  } catch (error) {
    if (error instanceof RangeError || error instanceof SyntaxError) return null;
    throw error;
  }
}

/** The document with lists in at most two levels, which is what the format has: pasting can nest them deeper. */
function flattened(doc: Node): Node {
  const visit = (node: Node, depth: number): Node[] => {
    const isList = node.type === RICH.nodes.bulletList || node.type === RICH.nodes.orderedList;
    if (isList && depth === 2) {
      const paragraphs: Node[] = [];
      node.descendants((inner) => {
        if (inner.type === RICH.nodes.paragraph) paragraphs.push(inner);
      });
      return paragraphs;
    }
    if (node.isLeaf || node.isTextblock) return [node];
    return [
      node.type.create(
        node.attrs,
        node.children.flatMap((child) => visit(child, depth + (isList ? 1 : 0))),
      ),
    ];
  };
  return doc.type.create(
    null,
    doc.children.flatMap((child) => visit(child, 0)),
  );
}
