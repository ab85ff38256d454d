import type { Design, Inline, RichText } from '../../mail/blocks/design.ts';
import { VARIABLE } from '../../mail/blocks/variable.ts';
import type { TemplateType } from '../../store/templates.ts';
import de from './de.json' with { type: 'json' };
import designs from './designs.json' with { type: 'json' };
import en from './en.json' with { type: 'json' };
import fr from './fr.json' with { type: 'json' };

/*
 * Starters: designs to begin a template with. `designs.json` has their blocks, one file for each language their texts.
 *
 * In blocks, texts are keys of the texts, padding is `[top, right, bottom, left]`, and a column is its blocks. In texts,
 * `%company%` is the account, an empty line separates paragraphs, `- ` begins an item of a list, and `**bold**`,
 * `[text](link)` and `{{name|default}}` are as usual.
 */

export const STARTER_LANGUAGES = ['en', 'de', 'fr'] as const;
export type StarterLanguage = (typeof STARTER_LANGUAGES)[number];

export interface Starter {
  starterId: string;
  name: string;
  description: string;
  type: TemplateType;
  subject: string;
  design: Design;
}

const TEXTS: Record<StarterLanguage, Readonly<Record<string, string>>> = { en, de, fr };

/** A block of designs.json. */
interface StarterBlock {
  type: string;
  padding?: number[];
  content?: string;
  text?: string;
  columns?: StarterBlock[][];
}

/** All starters in a language. `company`: the name of the account; null: a placeholder. */
export function starters(language: StarterLanguage, company: string | null): Starter[] {
  const texts = TEXTS[language];
  // What a text of a design must not contain.
  const name = company?.replaceAll(/[<>{}\\\p{Cc}\p{Zl}\p{Zp}]/gu, '').trim() || texts['company'];
  const filled = (part: string) => part.replaceAll('%company%', () => name ?? '');
  const source = (key: string) => texts[key] ?? '';
  const text = (key: string) => filled(source(key));
  return designs.map(({ id, type, theme, blocks }) => {
    const key = id.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
    const design = {
      version: 1,
      language,
      preheader: text(`${key}.preheader`),
      theme,
      blocks: blocks.map((block, index) => buildBlock(block, `${block.type}-${index + 1}`, source, filled)),
    };
    return {
      starterId: id,
      name: text(`${key}.name`),
      description: text(`${key}.description`),
      // Sound, as the design is: a test reads all starters with the schema of templates.
      type: type as TemplateType,
      subject: text(`${key}.subject`),
      design: design as Design,
    };
  });
}

/** `filled`: a text with the name of the company, which is never read as markup. */
function buildBlock(
  block: StarterBlock,
  id: string,
  source: (key: string) => string,
  filled: (text: string) => string,
): object {
  const { padding, content, text: label, columns, ...rest } = block;
  const [top, right, bottom, left] = padding ?? [];
  return {
    id,
    ...rest,
    ...(padding === undefined ? {} : { padding: { top, right, bottom, left } }),
    ...(label === undefined ? {} : { text: filled(source(label)) }),
    ...(content === undefined
      ? {}
      : {
          content:
            block.type === 'text' ? documentOf(source(content), filled) : inlinesOf(source(content), filled),
        }),
    ...(columns === undefined
      ? {}
      : {
          columns: columns.map((blocks, column) => ({
            blocks: blocks.map((one, index) =>
              buildBlock(one, `${id}-${column + 1}-${index + 1}`, source, filled),
            ),
          })),
        }),
  };
}

function documentOf(text: string, filled: (text: string) => string): RichText {
  return {
    type: 'doc',
    content: text.split('\n\n').map((part) =>
      part.startsWith('- ')
        ? {
            type: 'bulletList',
            content: part.split('\n').map((item) => ({
              type: 'listItem',
              content: [{ type: 'paragraph', content: inlinesOf(item.slice(2), filled) }],
            })),
          }
        : { type: 'paragraph', content: inlinesOf(part, filled) },
    ),
  };
}

/** Of the text between them: bold, a link, a variable, a line break. */
const SPECIAL = new RegExp(`\\*\\*(.+?)\\*\\*|\\[([^\\]]+)\\]\\(([^)]+)\\)|${VARIABLE.source}|\\n`, 'g');

function inlinesOf(
  text: string,
  filled: (text: string) => string,
  marks: NonNullable<Inline['marks']> = [],
): Inline[] {
  const nodes: Inline[] = [];
  const own = marks.length === 0 ? {} : { marks };
  let at = 0;
  const addText = (end: number) => {
    if (end > at) nodes.push({ type: 'text', text: filled(text.slice(at, end)), ...own });
  };
  for (const match of text.matchAll(SPECIAL)) {
    const [all, bold, label, href, name, value] = match;
    addText(match.index);
    at = match.index + all.length;
    if (bold !== undefined) nodes.push(...inlinesOf(bold, filled, [...marks, { type: 'bold' }]));
    else if (label !== undefined && href !== undefined)
      nodes.push(...inlinesOf(label, filled, [...marks, { type: 'link', attrs: { href } }]));
    else if (name !== undefined)
      nodes.push({
        type: 'variable',
        attrs: { name, ...(value === undefined ? {} : { default: value }) },
        ...own,
      });
    else nodes.push({ type: 'hardBreak' });
  }
  addText(text.length);
  return nodes;
}
