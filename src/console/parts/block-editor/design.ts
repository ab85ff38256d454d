import type { Block, BlockOf, Design, Inline, RichText, Theme } from '../../../mail/blocks/design.ts';
import { safeAddress } from './safe-address.ts';

export type { Block, BlockOf, Design, Inline, RichText, Theme };
export type BlockType = Block['type'];
/** A block that may be in a column. */
export type ColumnBlock = Exclude<Block, { type: 'columns' | 'footer' }>;

/** What can be inserted, in the order of the menu; a footer there is always. */
export const INSERTABLE = [
  'heading',
  'text',
  'image',
  'button',
  'columns',
  'divider',
  'spacer',
  'social',
] as const satisfies readonly BlockType[];
export type Insertable = (typeof INSERTABLE)[number];

/** A new block of a type. Its id is replaced when it is inserted. */
export function newBlock(type: Insertable, buttonText: string): Block {
  const id = 'new';
  switch (type) {
    case 'heading':
      return { id, type, level: 2, content: [] };
    case 'text':
      return { id, type, content: { type: 'doc', content: [{ type: 'paragraph' }] } };
    case 'image':
      return { id, type, src: '', alt: '', width: 536, height: 300 };
    case 'button':
      return { id, type, text: buttonText, href: '' };
    case 'columns':
      return { id, type, columns: [{ blocks: [] }, { blocks: [] }] };
    case 'divider':
      return { id, type };
    case 'spacer':
      return { id, type, height: 32 };
    default:
      return { id, type, links: [{ network: 'website', href: '' }] };
  }
}

const IMAGE_ADDRESS = /^(?:https?:\/\/|\{\{)/i;

/** What a block lacks to be sent. */
export type Fault = 'src' | 'text' | 'href' | 'links';

/** What a block lacks to be sent; the blocks in its columns are others. */
export function faultOf(block: Block): Fault | null {
  if (block.type === 'image') {
    if (!IMAGE_ADDRESS.test(block.src) || safeAddress(block.src) !== block.src) return 'src';
    return block.href === undefined || safeAddress(block.href) === block.href ? null : 'href';
  }
  if (block.type === 'button') {
    if (block.text.trim() === '') return 'text';
    return safeAddress(block.href) === block.href ? null : 'href';
  }
  if (block.type === 'social')
    return block.links.length > 0 && block.links.every(({ href }) => safeAddress(href) === href)
      ? null
      : 'links';
  return null;
}

/** The design without blocks that lack something: what can be shown of it already. */
export function finishedPart(design: Design): Design {
  const blocks = design.blocks
    .filter((block) => faultOf(block) === null)
    .map((block) =>
      block.type === 'columns'
        ? {
            ...block,
            columns: block.columns.map((column) => ({
              ...column,
              blocks: column.blocks.filter((inner) => faultOf(inner) === null),
            })),
          }
        : block,
    );
  return { ...design, blocks };
}
