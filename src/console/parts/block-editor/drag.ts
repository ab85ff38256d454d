import type { Design } from './design.ts';
import { findBlock, isColumnBlock, mayBeAt, type Place } from './model.ts';

/* Blocks are dragged by their grip, with the mouse, a pen or a finger. The keyboard moves them by Alt and arrow keys. */

/** Where the block would be put, and the line that shows it, in px of the canvas. */
export interface Drop {
  place: Place;
  line: { top: number; left: number; width: number };
}

interface DragOptions {
  /** The element that contains the lists, to which the line is relative. */
  canvas: HTMLElement;
  /** The element that gets the events of the pointer. */
  grip: HTMLElement;
  design: () => Design;
  id: string;
  /** Called with each other place; null: none. */
  onMove: (drop: Drop | null) => void;
  /** Called once: with the place; null: it was cancelled. */
  onEnd: (drop: Drop | null) => void;
}

/** A press that moves less is a click, in px. */
const MIN_DISTANCE = 5;
/** The window scrolls while the pointer is this close to its top or bottom, in px, by so many px for each frame. */
const EDGE = 72;
const SPEED = 14;

/** Follows a pointer that was pressed on a grip. */
export function startDrag(start: PointerEvent, options: DragOptions): void {
  const { canvas, grip, design: read, id, onMove, onEnd } = options;
  let at = { x: start.clientX, y: start.clientY };
  let isDragging = false;
  let drop: Drop | null = null;
  let frame: number;
  const show = () => {
    drop = dropAt(canvas, read(), id, at);
    onMove(drop);
  };
  const scroll = () => {
    // The page or the block was left: nothing more happens to the grip.
    if (!grip.isConnected) return end(null);
    const speed = at.y < EDGE ? -SPEED : at.y > window.innerHeight - EDGE ? SPEED : 0;
    if (isDragging && speed !== 0) {
      window.scrollBy(0, speed);
      show();
    }
    frame = requestAnimationFrame(scroll);
    return undefined;
  };
  const move = (event: PointerEvent) => {
    if (event.pointerId !== start.pointerId) return;
    at = { x: event.clientX, y: event.clientY };
    if (!isDragging) {
      if (Math.hypot(at.x - start.clientX, at.y - start.clientY) < MIN_DISTANCE) return;
      isDragging = true;
    }
    show();
  };
  const end = (result: Drop | null) => {
    cancelAnimationFrame(frame);
    listeners.abort();
    if (isDragging) onEnd(result);
  };
  const listeners = new AbortController();
  const { signal } = listeners;
  frame = requestAnimationFrame(scroll);
  grip.setPointerCapture(start.pointerId);
  grip.addEventListener('pointermove', move, { signal });
  grip.addEventListener('pointerup', () => end(drop), { signal });
  grip.addEventListener('pointercancel', () => end(null), { signal });
  window.addEventListener(
    'keydown',
    (event) => {
      if (!isDragging || event.key !== 'Escape') return;
      event.preventDefault();
      event.stopPropagation();
      end(null);
    },
    { signal, capture: true },
  );
}

/** The place at a point: in the innermost list there, between the blocks whose middles are above and below. */
function dropAt(
  canvas: HTMLElement,
  design: Design,
  id: string,
  { x, y }: { x: number; y: number },
): Drop | null {
  const block = findBlock(design, id);
  if (block === null) return null;
  const lists = [...canvas.querySelectorAll<HTMLElement>('[data-list]')];
  const own = canvas.querySelector(`[data-item="${id}"]`);
  const inner = lists.filter((list) => {
    const { left, right, top, bottom } = list.getBoundingClientRect();
    return (
      list.dataset['list'] !== '' && x >= left && x < right && y >= top && y < bottom && !own?.contains(list)
    );
  });
  const isNested = isColumnBlock(block);
  const list = (isNested ? inner.at(-1) : undefined) ?? lists[0];
  if (list === undefined) return null;
  const blocks = [...list.children].filter(
    (child): child is HTMLElement => child instanceof HTMLElement && child.dataset['item'] !== undefined,
  );
  const boxes = blocks.map((each) => each.getBoundingClientRect());
  let index = boxes.findIndex(({ top, height }) => y < top + height / 2);
  if (index === -1) index = boxes.length;
  const [parent = '', column = '0'] = (list.dataset['list'] ?? '').split(' ');
  let place: Place = { parent: parent === '' ? null : parent, column: Number(column), index };
  // Nothing is behind the footer.
  while (place.index > 0 && !mayBeAt(design, block, place)) place = { ...place, index: place.index - 1 };
  if (!mayBeAt(design, block, place)) return null;
  const outer = canvas.getBoundingClientRect();
  const box = list.getBoundingClientRect();
  const [before, after] = [boxes[place.index - 1], boxes[place.index]];
  const top =
    before !== undefined && after !== undefined
      ? (before.bottom + after.top) / 2
      : (before?.bottom ?? after?.top ?? box.top + box.height / 2);
  return { place, line: { top: top - outer.top, left: box.left - outer.left, width: box.width } };
}
