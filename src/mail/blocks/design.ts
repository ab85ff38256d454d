import * as z from 'zod';
import { foreignFallback } from '../foreign-syntax.ts';
import { textFault } from '../text-fault.ts';
import { VARIABLE } from './variable.ts';

/*
 * Designs: mail as a list of blocks, which `render.ts` converts to HTML. The schema is strict and every value has bounds, so
 * that a design that it accepts can be rendered, and its HTML contains nothing that the author did not see.
 *
 * Texts may contain variables (`{{name|default}}`, template.ts). Rich text is the JSON of a ProseMirror document. Colors are
 * `#rrggbb`, sizes are CSS pixels.
 */

/** Blocks of a design, with those inside of columns. */
const MAX_BLOCKS = 150;
/** Characters of a design as JSON: the blocks, and with all of it. */
const MAX_BLOCKS_JSON = 100_000;
export const MAX_DESIGN_JSON = MAX_BLOCKS_JSON + 2000;
const MAX_BLOCKS_OF_COLUMN = 20;
/** Inline nodes of a paragraph. */
const MAX_NODES = 300;
/** Paragraphs and lists of a text, or items of a list. */
const MAX_PARTS = 100;
const MAX_TEXT = 5000;
const MAX_URL = 2000;

/** Characters that would end an attribute or begin a tag, wherever the default is inserted. */
const NOT_IN_DEFAULT = /[<>"{}|\r\n]/;
/** A tag with or without attributes, or a comment. `<ann@example.com>` is text. */
const MARKUP = /<(?:\/?[a-z][a-z0-9:-]*(?:\/?>|\s[^<>]*>)|!--)/i;

/** Why a default cannot be inserted, as the rest of a sentence; null: it can. */
function defaultFault(name: string, value: string): string | null {
  if (NOT_IN_DEFAULT.test(value))
    return 'must not contain braces, quotation marks, line breaks or any of < > |';
  return foreignFallback(name, value) === null
    ? null
    : `must not be the name of a filter: {{${name}|${value.slice(0, 40)}}} would be read as one`;
}

/** Why a text cannot be shown as it is, as the rest of a sentence; null: it can. */
function contentFault(text: string): string | null {
  const fault = textFault(text);
  if (fault !== null) return fault;
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)) return 'must not contain line breaks or control characters';
  if (text.includes('{{{')) return 'must not contain {{{: values are always escaped';
  if (MARKUP.test(text)) return 'must not contain HTML: use the fields and marks of the block';
  for (const [, name = '', value] of text.matchAll(VARIABLE)) {
    const ofDefault = value === undefined ? null : defaultFault(name, value.trim());
    if (ofDefault !== null) return `has a variable whose default ${ofDefault}`;
  }
  return null;
}

/** A line of text with variables. */
function line(max: number) {
  return z
    .string()
    .max(max)
    .superRefine((text, context) => {
      const message = contentFault(text);
      if (message !== null) context.addIssue({ code: 'custom', message });
    });
}

/** What an URL cannot contain as text: RFC 3986 has none of them. */
const NOT_IN_URL = /[\s\p{Cc}"<>\\^`{}|]/u;
const WHOLE_VARIABLE = /^\{\{[ \t]*[A-Za-z_][A-Za-z0-9_.]*[ \t]*(?:\|([^{}\r\n]*))?\}\}$/;

/** Whether a text is a URL of one of the schemes, with variables in it or not. */
function isUrl(text: string, schemes: RegExp): boolean {
  if (!schemes.test(text) || textFault(text) !== null) return false;
  const plain = text.replaceAll(VARIABLE, (_, _name, value?: string) => value?.trim() || 'x');
  return !NOT_IN_URL.test(plain) && URL.canParse(plain);
}

function url(schemes: RegExp, message: string) {
  return z
    .string()
    .max(MAX_URL)
    .refine((text) => {
      const variable = WHOLE_VARIABLE.exec(text);
      if (variable === null) return !text.includes('{{{') && isUrl(text, schemes);
      const value = variable[1]?.trim() ?? '';
      return value === '' || isUrl(value, schemes);
    }, message);
}

const href = url(
  /^(?:https?:\/\/|mailto:)[^/]/i,
  'must be a URL with http, https or mailto, or a variable such as {{unsubscribe_url}}',
).describe('With http, https or mailto, with variables or as one: `{{orderUrl}}`.');
const src = url(
  /^https?:\/\/[^/]/i,
  'must be a URL with http or https, or a variable such as {{photoUrl}}',
).describe('With http or https, or a variable.');

const color = z.string().regex(/^#[0-9A-Fa-f]{6}$/, 'must be a color such as #1a2b3c');
const pixels = (min: number, max: number) => z.int().min(min).max(max);

const variableName = z
  .string()
  .max(100)
  .regex(
    /^[A-Za-z_][A-Za-z0-9_.]*$/,
    'must be the name of a variable, such as firstName or customFields.plan',
  );

const mark = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('bold') }),
    z.strictObject({ type: z.literal('italic') }),
    z.strictObject({ type: z.literal('underline') }),
    z.strictObject({ type: z.literal('strikethrough') }),
    z.strictObject({ type: z.literal('link'), attrs: z.strictObject({ href }) }),
    z.strictObject({ type: z.literal('color'), attrs: z.strictObject({ color }) }),
  ])
  .meta({ id: 'DesignMark' });

const marks = z
  .array(mark)
  .max(6)
  .refine((list) => new Set(list.map(({ type }) => type)).size === list.length, 'has the same mark twice')
  .optional();

const inline = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('text'), text: line(MAX_TEXT).min(1), marks }),
    z.strictObject({
      type: z.literal('variable'),
      attrs: z
        .strictObject({ name: variableName, default: z.string().max(200).nullish() })
        .superRefine(({ name, default: value }, context) => {
          const message = value ? (textFault(value) ?? defaultFault(name, value)) : null;
          if (message !== null) context.addIssue({ code: 'custom', path: ['default'], message });
        }),
      marks,
    }),
    z.strictObject({ type: z.literal('hardBreak'), marks }),
  ])
  .meta({ id: 'DesignInline', description: 'A part of a paragraph: text, a variable or a line break.' });

const inlines = z.array(inline).max(MAX_NODES);
const paragraph = z.strictObject({ type: z.literal('paragraph'), content: inlines.optional() });

const listsOf = <Part extends z.ZodType>(part: Part) => {
  const content = z
    .array(z.strictObject({ type: z.literal('listItem'), content: z.array(part).min(1).max(MAX_PARTS) }))
    .min(1)
    .max(MAX_PARTS);
  return [
    z.strictObject({ type: z.literal('bulletList'), content }),
    z.strictObject({
      type: z.literal('orderedList'),
      attrs: z.strictObject({ start: z.int().min(0).max(9999) }).optional(),
      content,
    }),
  ] as const;
};
const richText = z
  .strictObject({
    type: z.literal('doc'),
    content: z
      .array(
        z.discriminatedUnion('type', [
          paragraph,
          ...listsOf(z.discriminatedUnion('type', [paragraph, ...listsOf(paragraph)])),
        ]),
      )
      .max(MAX_PARTS),
  })
  .meta({
    id: 'DesignText',
    description: 'A ProseMirror document: paragraphs, and lists with one level of lists in them.',
  });

const align = z.enum(['left', 'center', 'right']).optional().describe('Absent: as the language is written.');
const common = {
  id: z
    .string()
    .max(40)
    .regex(/^[A-Za-z0-9_-]+$/, 'must have letters, digits, - and _ only')
    .describe('Unique in the design.'),
  padding: z
    .strictObject({ top: pixels(0, 96), right: pixels(0, 96), bottom: pixels(0, 96), left: pixels(0, 96) })
    .meta({ id: 'DesignPadding' })
    .optional(),
  background: color.optional(),
};

const NETWORKS = [
  'bluesky',
  'email',
  'facebook',
  'github',
  'instagram',
  'linkedin',
  'mastodon',
  'pinterest',
  'telegram',
  'threads',
  'tiktok',
  'website',
  'whatsapp',
  'x',
  'youtube',
] as const;

const contentBlocks = [
  z.strictObject({
    type: z.literal('heading'),
    ...common,
    level: z.literal([1, 2, 3]),
    content: inlines,
    align,
    color: color.optional(),
  }),
  z.strictObject({
    type: z.literal('text'),
    ...common,
    content: richText,
    align,
    color: color.optional(),
    size: pixels(12, 24).optional().describe('Default: 16.'),
  }),
  z.strictObject({
    type: z.literal('button'),
    ...common,
    text: line(100).min(1),
    href,
    align,
    color: color.optional().describe('Behind the text. Default: the accent of the theme.'),
    textColor: color.optional().describe('Default: white or black.'),
    radius: pixels(0, 30).optional().describe('Default: 6.'),
    fullWidth: z.boolean().optional(),
  }),
  z.strictObject({
    type: z.literal('image'),
    ...common,
    src,
    alt: line(300).describe('Empty for an image that only decorates.'),
    width: pixels(1, 2000).describe('As it is shown; scaled down to the space that there is.'),
    height: pixels(1, 4000),
    href: href.optional(),
    align,
    radius: pixels(0, 30).optional(),
  }),
  z.strictObject({
    type: z.literal('divider'),
    ...common,
    color: color.optional(),
    thickness: pixels(1, 8).optional().describe('Default: 1.'),
  }),
  z.strictObject({ type: z.literal('spacer'), ...common, height: pixels(4, 120) }),
  z.strictObject({
    type: z.literal('social'),
    ...common,
    links: z
      .array(z.strictObject({ network: z.enum(NETWORKS), href, label: line(40).min(1).optional() }))
      .min(1)
      .max(10),
    align,
    color: color.optional(),
  }),
] as const;

const columnBlock = z
  .discriminatedUnion('type', [...contentBlocks])
  .meta({ id: 'DesignColumnBlock', description: 'A block in a column.' });

const block = z
  .discriminatedUnion('type', [
    ...contentBlocks,
    z.strictObject({
      type: z.literal('columns'),
      ...common,
      columns: z
        .array(z.strictObject({ blocks: z.array(columnBlock).max(MAX_BLOCKS_OF_COLUMN) }))
        .min(2)
        .max(3),
      split: z
        .enum(['1:1', '1:2', '2:1'])
        .optional()
        .describe('Widths of two columns. Default, and of three columns: equal ones.'),
      gap: pixels(0, 48).optional().describe('Between the columns. Default: 24.'),
      valign: z.enum(['top', 'middle']).optional(),
      stack: z
        .boolean()
        .optional()
        .describe('Whether narrow screens show the columns one below the other. Default: true.'),
    }),
    z.strictObject({
      type: z.literal('footer'),
      ...common,
      content: inlines.optional().describe('Above the address and the link to unsubscribe.'),
      align,
      reportAbuse: z.boolean().optional().describe('Whether it has the link to report abuse.'),
    }),
  ])
  .meta({ id: 'DesignBlock' });

const FONTS = ['system', 'arial', 'verdana', 'tahoma', 'trebuchet', 'georgia', 'times', 'courier'] as const;

const theme = z
  .strictObject({
    accent: color.describe('Buttons and links.'),
    background: color.describe('Around the content.'),
    surface: color.optional().describe('Behind the content. Default: `#ffffff`.'),
    text: color,
    width: pixels(480, 700),
    font: z.enum(FONTS),
  })
  .meta({ id: 'DesignTheme' });

/** Why a request with a design and `html` is refused, as the rest of a sentence: which of them is meant is not certain. */
export const DESIGN_AND_HTML = 'must not be given with design, from which the html is made';

/** A design as a request contains it. */
export const designSchema = z
  .strictObject({
    version: z.literal(1),
    language: z
      .string()
      .max(35)
      .regex(/^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$/, 'must be a language such as en or pt-BR')
      .optional()
      .describe('Of the content (BCP 47); sets the direction. Default: `en`.'),
    preheader: line(200).optional().describe('What lists of mail show after the subject.'),
    theme,
    blocks: z.array(block).min(1).max(MAX_BLOCKS),
  })
  .superRefine(({ blocks }, context) => {
    const refuse = (path: (string | number)[], message: string) =>
      context.addIssue({ code: 'custom', path: ['blocks', ...path], message });
    const ids = new Set<string>();
    let count = 0;
    let hasFooter = false;
    const add = (id: string, path: (string | number)[]) => {
      count++;
      if (ids.has(id)) refuse([...path, 'id'], 'is the id of an earlier block');
      ids.add(id);
    };
    for (const [index, one] of blocks.entries()) {
      add(one.id, [index]);
      if (one.type === 'footer') {
        if (hasFooter) refuse([index], 'is a second footer: a design has one');
        hasFooter = true;
      }
      if (one.type !== 'columns') continue;
      for (const [column, { blocks: inside }] of one.columns.entries())
        for (const [at, { id }] of inside.entries()) add(id, [index, 'columns', column, 'blocks', at]);
      if (one.split !== undefined && one.columns.length !== 2)
        refuse([index, 'split'], 'is for two columns only');
    }
    if (count > MAX_BLOCKS) refuse([], `must have at most ${MAX_BLOCKS} blocks with those in columns`);
    if (JSON.stringify(blocks).length > MAX_BLOCKS_JSON)
      refuse([], `must have at most ${MAX_BLOCKS_JSON} characters as JSON`);
  })
  .meta({
    id: 'Design',
    description: 'A mail as a list of blocks, from which the server makes the html.',
  });

export type Design = z.output<typeof designSchema>;
export type Block = Design['blocks'][number];
export type BlockOf<Type extends Block['type']> = Extract<Block, { type: Type }>;
export type Inline = z.output<typeof inline>;
export type Mark = z.output<typeof mark>;
export type RichText = z.output<typeof richText>;
export type Theme = z.output<typeof theme>;
export type Network = (typeof NETWORKS)[number];
