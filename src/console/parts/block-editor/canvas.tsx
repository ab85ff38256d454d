import { createContext } from 'preact';
import { useContext, useRef, useState } from 'preact/hooks';
import { FONT_STACKS, footerBackground, paddingOf } from '../../../mail/blocks/look.ts';
import { useTexts } from '../../texts.ts';
import { Icon } from '../icon/icon.tsx';
import { BlockView } from './block-view.tsx';
import { type Block, faultOf } from './design.ts';
import { type Drop, startDrag } from './drag.ts';
import { useEditing } from './editing.ts';
import { lastIndex, placeOf } from './model.ts';

/** The id of the text that explains the keys of a block. */
const KEYS_HELP = 'blocks-keys';

type DragStart = (event: PointerEvent & { currentTarget: HTMLElement }, id: string) => void;

/** What is dragged, and how dragging begins. */
const DragContext = createContext<{ dragged: string | null; drag: DragStart }>({
  dragged: null,
  drag: () => {},
});

/** The mail, at its width: its blocks in their order, each of which can be chosen, dragged and edited. */
export function Canvas() {
  const { t } = useTexts();
  const { design, isReadOnly, choose, moveTo, openMenu } = useEditing();
  const { theme, blocks } = design;
  const canvas = useRef<HTMLDivElement>(null);
  const [drop, setDrop] = useState<Drop | null>(null);
  const [dragged, setDragged] = useState<string | null>(null);
  const newest = useRef(design);
  newest.current = design;
  const drag: DragStart = (event, id) => {
    if (isReadOnly || event.button !== 0 || canvas.current === null) return;
    startDrag(event, {
      canvas: canvas.current,
      grip: event.currentTarget,
      design: () => newest.current,
      id,
      onMove: (next) => {
        setDragged(id);
        setDrop(next);
      },
      onEnd: (last) => {
        setDragged(null);
        setDrop(null);
        if (last !== null) moveTo(id, last.place);
      },
    });
  };
  const end = lastIndex(design);
  const surface = theme.surface ?? '#ffffff';
  const font = { width: `${theme.width}px`, fontFamily: FONT_STACKS[theme.font] };
  return (
    <DragContext.Provider value={{ dragged, drag }}>
      <div
        class={dragged === null ? 'canvas' : 'canvas dragging'}
        ref={canvas}
        style={{ background: theme.background }}
        onPointerDown={({ target, currentTarget }) => {
          if (target === currentTarget) choose(null);
        }}
      >
        <p class="unseen" id={KEYS_HELP}>
          {t('blocks.keys')}
        </p>
        <div class="paper" style={{ ...font, background: surface }}>
          <BlockList blocks={blocks.slice(0, end)} parent={null} column={0} background={surface} />
        </div>
        {!isReadOnly && (
          <button
            type="button"
            class="add-block"
            style={{ width: `${theme.width}px` }}
            onClick={({ currentTarget }) =>
              openMenu(currentTarget, { place: { parent: null, column: 0, index: end } })
            }
          >
            <Icon name="plus" />
            {t('blocks.add')}
          </button>
        )}
        <ul class="block-list below" style={font}>
          {blocks.slice(end).map((block, index) => (
            <BlockFrame
              key={block.id}
              block={block}
              isFirst={index === 0}
              isLast
              isColumn={false}
              background={theme.background}
            />
          ))}
        </ul>
        {drop !== null && (
          <div
            class="drop-line"
            style={{ top: `${drop.line.top}px`, left: `${drop.line.left}px`, width: `${drop.line.width}px` }}
          />
        )}
      </div>
    </DragContext.Provider>
  );
}

interface BlockListProps {
  blocks: readonly Block[];
  /** The block of columns that it is in. */
  parent: string | null;
  column: number;
  background: string;
}

/** The blocks of the mail or of a column. */
function BlockList({ blocks, parent, column, background }: BlockListProps) {
  const { t } = useTexts();
  const { isReadOnly, openMenu } = useEditing();
  const isColumn = parent !== null;
  return (
    <ul class="block-list" data-list={isColumn ? `${parent} ${column}` : ''}>
      {blocks.map((block, index) => (
        <BlockFrame
          key={block.id}
          block={block}
          isFirst={index === 0}
          isLast={index === blocks.length - 1}
          isColumn={isColumn}
          background={background}
        />
      ))}
      {isColumn && blocks.length === 0 && (
        <li class="empty-column">
          <button
            type="button"
            class="add-block"
            disabled={isReadOnly}
            aria-label={t('blocks.addToColumn', { number: column + 1 })}
            onClick={({ currentTarget }) => openMenu(currentTarget, { place: { parent, column, index: 0 } })}
          >
            <Icon name="plus" />
          </button>
        </li>
      )}
    </ul>
  );
}

interface BlockFrameProps {
  block: Block;
  isFirst: boolean;
  isLast: boolean;
  isColumn: boolean;
  background: string;
}

/** A block with its grip, and the button that inserts another one behind it. */
function BlockFrame({ block, isFirst, isLast, isColumn, background: outer }: BlockFrameProps) {
  const { t } = useTexts();
  const { design, chosen, isReadOnly, isUndescribed, choose, openMenu } = useEditing();
  const { dragged, drag } = useContext(DragContext);
  const { id, type } = block;
  const isChosen = chosen === id;
  const padding = paddingOf(block, { isColumn, isFirst, isLast });
  const background =
    type === 'footer' ? footerBackground(block, design.theme.background) : (block.background ?? outer);
  const isFaulty = faultOf(block) !== null || isUndescribed(block);
  const isFooter = type === 'footer';
  const insert = (element: HTMLElement, offset: number) => {
    const place = placeOf(design, id);
    if (place !== null) openMenu(element, { place: { ...place, index: place.index + offset } });
  };
  const classes = [
    'block',
    ...(isChosen ? ['chosen'] : []),
    ...(isFaulty ? ['faulty'] : []),
    ...(dragged === id ? ['dragged'] : []),
  ];
  return (
    <li
      class={classes.join(' ')}
      data-item={id}
      data-type={type}
      onPointerDown={(event) => {
        event.stopPropagation();
        choose(id);
      }}
      onFocusIn={(event) => {
        event.stopPropagation();
        choose(id);
      }}
    >
      <button
        type="button"
        class="grip"
        data-grip={id}
        tabIndex={isChosen || (chosen === null && id === design.blocks[0]?.id) ? 0 : -1}
        aria-label={t('blocks.block', { type: t(`blocks.type.${type}`) })}
        aria-describedby={KEYS_HELP}
        title={isFooter ? t('blocks.footer.kept') : t('blocks.grip')}
        onPointerDown={(event) => {
          if (!isFooter) drag(event, id);
        }}
      >
        <Icon name={isFooter ? 'pin' : 'grip-vertical'} />
      </button>
      <div
        class="block-body"
        style={{
          '--top': `${padding.top}px`,
          '--right': `${padding.right}px`,
          '--bottom': `${padding.bottom}px`,
          '--left': `${padding.left}px`,
          background: background === outer ? 'none' : background,
        }}
      >
        <BlockView
          block={block}
          background={background}
          renderColumn={(blocks, column) => (
            <BlockList key={column} blocks={blocks} parent={id} column={column} background={background} />
          )}
        />
      </div>
      {!isReadOnly && !isFooter && (
        <>
          {isFirst && (
            <InsertButton isChosen={isChosen} where="before" onClick={(element) => insert(element, 0)} />
          )}
          <InsertButton isChosen={isChosen} where="after" onClick={(element) => insert(element, 1)} />
        </>
      )}
    </li>
  );
}

interface InsertButtonProps {
  isChosen: boolean;
  where: 'before' | 'after';
  onClick: (element: HTMLElement) => void;
}

function InsertButton({ isChosen, where, onClick }: InsertButtonProps) {
  const { t } = useTexts();
  const label = t(`blocks.insert.${where}`);
  return (
    <button
      type="button"
      class={`insert ${where}`}
      tabIndex={isChosen ? 0 : -1}
      aria-label={label}
      title={label}
      onClick={({ currentTarget }) => onClick(currentTarget)}
    >
      <Icon name="plus" />
    </button>
  );
}
