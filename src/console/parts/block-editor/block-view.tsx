import type { ComponentChildren } from 'preact';
import {
  buttonColors,
  FONT_STACKS,
  footerBackground,
  HEADINGS,
  LEGAL_COLOR,
  linkColorOn,
  NETWORK_NAMES,
  textColorOn,
} from '../../../mail/blocks/look.ts';
import { useTexts } from '../../texts.ts';
import type { Block, BlockOf, ColumnBlock, Inline, RichText } from './design.ts';
import { useEditing } from './editing.ts';
import { MediaImage } from './media-image.tsx';
import { BlockText } from './rich-text/block-text.tsx';
import { INLINE_CODEC, LINE_CODEC, RICH_CODEC, type TextCodec } from './rich-text/schema.ts';

interface ViewProps<B extends Block> {
  block: B;
  /** The color behind the block. */
  background: string;
}

interface ColumnsProps {
  /** Shows the blocks of a column. */
  renderColumn: (blocks: readonly ColumnBlock[], column: number) => ComponentChildren;
}

/** A block as the mail shows it; its texts can be edited in it. */
export function BlockView({ block, background, renderColumn }: ViewProps<Block> & ColumnsProps) {
  switch (block.type) {
    case 'heading':
      return <HeadingView block={block} background={background} />;
    case 'text':
      return <TextView block={block} background={background} />;
    case 'button':
      return <ButtonView block={block} background={background} />;
    case 'image':
      return <ImageView block={block} background={background} />;
    case 'divider':
      return (
        <div
          class="view-divider"
          style={{ borderTop: `${block.thickness ?? 1}px solid ${block.color ?? '#e3e5e8'}` }}
        />
      );
    case 'spacer':
      return <div class="view-spacer" style={{ height: `${block.height}px` }} />;
    case 'social':
      return <SocialView block={block} background={background} />;
    case 'columns':
      return <ColumnsView block={block} renderColumn={renderColumn} />;
    default:
      return <FooterView block={block} background={background} />;
  }
}

interface EditedTextProps<T> {
  block: Block;
  value: T;
  codec: TextCodec<T>;
  label: string;
  placeholder: string;
  onChange: (value: T) => void;
}

/** A text of a block. `/` in an empty one opens the menu. */
function EditedText<T>({ block, value, codec, label, placeholder, onChange }: EditedTextProps<T>) {
  const { isReadOnly, setText, openMenu } = useEditing();
  return (
    <BlockText
      value={value}
      codec={codec}
      label={label}
      placeholder={placeholder}
      isReadOnly={isReadOnly}
      onChange={onChange}
      onActive={(view) => {
        if (view !== null) setText(view);
      }}
      onSlash={(element) => openMenu(element, { replaces: block.id })}
    />
  );
}

function HeadingView({ block, background }: ViewProps<BlockOf<'heading'>>) {
  const { t } = useTexts();
  const { design, change } = useEditing();
  const { size, line } = HEADINGS[block.level];
  return (
    <div
      class="view-heading"
      style={{
        textAlign: block.align ?? 'start',
        color: block.color ?? textColorOn(background, design.theme),
        fontSize: `${size}px`,
        lineHeight: `${line}px`,
        letterSpacing: block.level === 1 ? '-0.4px' : 'normal',
        '--link': linkColorOn(background, design.theme),
      }}
    >
      <EditedText<Inline[]>
        block={block}
        value={block.content}
        codec={INLINE_CODEC}
        label={t('blocks.type.heading')}
        placeholder={t('blocks.placeholder.heading')}
        onChange={(content) => change({ ...block, content }, `text ${block.id}`)}
      />
    </div>
  );
}

function TextView({ block, background }: ViewProps<BlockOf<'text'>>) {
  const { t } = useTexts();
  const { design, change, isReadOnly } = useEditing();
  const { size = 16 } = block;
  return (
    <div
      style={{
        textAlign: block.align ?? 'start',
        color: block.color ?? textColorOn(background, design.theme),
        fontSize: `${size}px`,
        lineHeight: `${Math.round(size * 1.6)}px`,
        '--link': linkColorOn(background, design.theme),
      }}
    >
      <EditedText<RichText>
        block={block}
        value={block.content}
        codec={RICH_CODEC}
        label={t('blocks.type.text')}
        placeholder={isReadOnly ? '' : t('blocks.placeholder.text')}
        onChange={(content) => change({ ...block, content }, `text ${block.id}`)}
      />
    </div>
  );
}

function ButtonView({ block }: ViewProps<BlockOf<'button'>>) {
  const { t } = useTexts();
  const { design, change } = useEditing();
  const { align, radius = 6, fullWidth = false } = block;
  const { background, text } = buttonColors(block, design.theme);
  return (
    <div style={{ textAlign: align ?? 'start' }}>
      <div
        class={fullWidth ? 'view-button full' : 'view-button'}
        style={{ background, color: text, borderRadius: `${radius}px`, '--link': text }}
      >
        <EditedText<string>
          block={block}
          value={block.text}
          codec={LINE_CODEC}
          label={t('blocks.type.button')}
          placeholder={t('blocks.placeholder.button')}
          onChange={(changed) => change({ ...block, text: changed }, `text ${block.id}`)}
        />
      </div>
    </div>
  );
}

const MARGINS = { left: '0 auto 0 0', center: '0 auto', right: '0 0 0 auto' } as const;

function ImageView({ block }: ViewProps<BlockOf<'image'>>) {
  const { align = 'left', radius = 0, width, height } = block;
  return (
    <div
      class="view-image"
      style={{
        maxWidth: `${width}px`,
        aspectRatio: `${width} / ${height}`,
        margin: MARGINS[align],
        borderRadius: `${radius}px`,
      }}
    >
      <MediaImage block={block} />
    </div>
  );
}

function SocialView({ block, background }: ViewProps<BlockOf<'social'>>) {
  const { design } = useEditing();
  return (
    <p
      class="view-social"
      style={{ textAlign: block.align ?? 'start', color: textColorOn(background, design.theme) }}
    >
      {block.links.map(({ network, label }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: links have no other name
        <span key={index} style={{ color: block.color ?? linkColorOn(background, design.theme) }}>
          {label ?? NETWORK_NAMES[network]}
        </span>
      ))}
    </p>
  );
}

function ColumnsView({ block, renderColumn }: { block: BlockOf<'columns'> } & ColumnsProps) {
  const { gap = 24, valign = 'top' } = block;
  return (
    <div
      class="view-columns"
      style={{
        '--columns': columnShares(block),
        gap: `${gap}px`,
        alignItems: valign === 'middle' ? 'center' : 'start',
      }}
    >
      {block.columns.map(({ blocks }, column) => renderColumn(blocks, column))}
    </div>
  );
}

function FooterView({ block }: ViewProps<BlockOf<'footer'>>) {
  const { t } = useTexts();
  const { design, change } = useEditing();
  const background = footerBackground(block, design.theme.background);
  return (
    <div
      class="view-footer"
      style={{
        textAlign: block.align ?? 'center',
        color: LEGAL_COLOR,
        fontFamily: FONT_STACKS[design.theme.font],
        '--link': linkColorOn(background, design.theme),
      }}
    >
      <EditedText<Inline[]>
        block={block}
        value={block.content ?? []}
        codec={INLINE_CODEC}
        label={t('blocks.type.footer')}
        placeholder={t('blocks.placeholder.footer')}
        onChange={(content) => change({ ...block, content }, `text ${block.id}`)}
      />
      <p class="view-legal">
        {t('blocks.footer.address')} · <span class="view-underlined">{t('blocks.footer.unsubscribe')}</span>
        {block.reportAbuse === true && (
          <>
            {' · '}
            <span class="view-underlined">{t('blocks.footer.report')}</span>
          </>
        )}
      </p>
    </div>
  );
}

/** The widths of columns as parts of the whole. */
function columnShares({ columns, split = '1:1' }: BlockOf<'columns'>): string {
  if (columns.length === 3) return 'repeat(3, minmax(0, 1fr))';
  if (split === '1:2') return 'minmax(0, 1fr) minmax(0, 2fr)';
  if (split === '2:1') return 'minmax(0, 2fr) minmax(0, 1fr)';
  return 'repeat(2, minmax(0, 1fr))';
}
