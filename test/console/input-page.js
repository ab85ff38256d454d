// Runs in every page of a window with an input of input.ts: records the events of input, and guides the focus.

/** Types of the events that a keyboard, a mouse or a finger caused. */
window.inputEvents = new Set();
for (const type of ['keydown', 'mousedown', 'pointerdown', 'touchstart'])
  addEventListener(type, (event) => event.isTrusted && window.inputEvents.add(event.type), true);

/**
 * The key that brings the focus closer to an element, and how often it does not bring it past the element; '' if the
 * element has the focus, then with the reasons why this cannot be seen. `kind`: the type of the element.
 */
window.nextStep = (element) => {
  const kind = element.getAttribute('type') ?? element.localName;
  const active = innermost(document.activeElement);
  if (active === element) return { key: '', times: 0, kind, hidden: whyHidden(element) };
  if (active === null || active === document.body) return { key: 'Tab', times: 1, kind, hidden: [] };
  // Tab reaches one radio button of a group, arrow keys the others.
  if (kind === 'radio' && active.type === 'radio' && active.name === element.name)
    return { key: isBefore(element, active) ? 'ArrowUp' : 'ArrowDown', times: 1, kind, hidden: [] };
  const [from, to] = [outermost(active), outermost(element)];
  const [first, last] = isBefore(to, from) ? [to, from] : [from, to];
  const between = [...document.querySelectorAll('a[href], button:enabled')].filter(
    (each) => each !== first && each !== last && isBefore(first, each) && isBefore(each, last),
  );
  const times = Math.max(1, between.filter((each) => each.tabIndex === 0 && each.checkVisibility()).length);
  return { key: to === first ? 'Shift+Tab' : 'Tab', times, kind, hidden: [] };
};

function isBefore(first, second) {
  return (second.compareDocumentPosition(first) & Node.DOCUMENT_POSITION_PRECEDING) !== 0;
}

/** The element with the focus, also inside shadow roots. */
function innermost(active) {
  const inner = active?.shadowRoot?.activeElement ?? null;
  return inner === null ? active : innermost(inner);
}

/** The element of the document that has an element in its shadow root, or the element itself. */
function outermost(element) {
  const root = element.getRootNode();
  return root === document ? element : outermost(root.host);
}

function whyHidden(element) {
  const { left, top, right, bottom } = element.getClientRects()[0];
  const x = (Math.max(left, 0) + Math.min(right, innerWidth)) / 2;
  const y = (Math.max(top, 0) + Math.min(bottom, innerHeight)) / 2;
  const shown = element.getRootNode().elementFromPoint(x, y);
  const isVisible = shown !== null && (element.contains(shown) || shown.contains(element));
  return [...(isVisible ? [] : ['not visible']), ...(isOutlined(element) ? [] : ['without an outline'])];
}

function isOutlined(element) {
  if (element === null) return false;
  const { outlineStyle, outlineWidth } = getComputedStyle(element);
  const isVisible = outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2;
  return isVisible || isOutlined(element.parentElement);
}
