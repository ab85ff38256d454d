import { configure } from '@testing-library/dom';
import { act } from 'preact/test-utils';
import { afterEach, vi } from 'vitest';
import { removeRendered } from './render.tsx';

// What an event changes is rendered before the test goes on.
configure({
  eventWrapper: (dispatch: () => unknown) => {
    let result: unknown;
    void act(() => {
      result = dispatch();
    });
    return result;
  },
});

/** happy-dom knows the attributes of popovers, but does not open them: what a browser does when one is opened and closed. */
function toggle(layer: HTMLElement, isOpen: boolean): void {
  if (layer.hasAttribute('data-open') === isOpen) return;
  const event = Object.assign(new Event('beforetoggle'), { newState: isOpen ? 'open' : 'closed' });
  layer.dispatchEvent(event);
  layer.toggleAttribute('data-open', isOpen);
}
// The document is the same for all files of a process.
if (!('hidePopover' in HTMLElement.prototype)) {
  // By this property, Preact finds the name of the event.
  Object.defineProperty(HTMLElement.prototype, 'onbeforetoggle', { value: null, writable: true });
  Object.defineProperty(HTMLElement.prototype, 'hidePopover', {
    value(this: HTMLElement) {
      toggle(this, false);
    },
  });
  document.addEventListener('click', ({ target }) => {
    const button = target instanceof Element ? target.closest('button[popovertarget]') : null;
    const layer = document.getElementById(button?.getAttribute('popovertarget') ?? '');
    if (layer !== null) toggle(layer, !layer.hasAttribute('data-open'));
  });
}

afterEach(async () => {
  await removeRendered();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});
