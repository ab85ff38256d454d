// Evaluated in a page by `accessibilityFaults` of accessibility.ts. Numbers are success criteria of WCAG 2.2.
(() => {
  const faults = [];
  const name = (element) => `<${element.localName}> "${(element.textContent ?? '').trim().slice(0, 40)}"`;

  /** Red, green, blue, and alpha where it is given. Contrast is computed for opaque colors only. */
  const channels = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = (color) => {
    const [r = 0, g = 0, b = 0] = channels(color).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const background = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if ((channels(color)[3] ?? 1) === 1) return color;
    }
    return 'rgb(255, 255, 255)';
  };

  // 1.4.3: contrast of text.
  for (const element of document.body.querySelectorAll('*')) {
    const hasText = [...element.childNodes].some(
      (node) => node.nodeType === Node.TEXT_NODE && (node.textContent ?? '').trim() !== '',
    );
    if (!hasText) continue;
    const style = getComputedStyle(element);
    const size = Number.parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = contrast(style.color, background(element));
    if (ratio < (isLarge ? 3 : 4.5)) faults.push(`contrast ${ratio.toFixed(2)} of ${name(element)}`);
    if (size < 14) faults.push(`text of ${size} px in ${name(element)}`);
  }
  // 1.4.11: contrast of the borders of controls.
  for (const button of document.querySelectorAll('button')) {
    const ratio = contrast(getComputedStyle(button).borderTopColor, background(button.parentElement));
    if (ratio < 3) faults.push(`contrast ${ratio.toFixed(2)} of the border of ${name(button)}`);
  }
  // 1.3.1, 4.1.2: every control and every group of radio buttons has a name.
  for (const input of document.querySelectorAll('input:not([type=hidden])')) {
    const label = [...(input.labels ?? [])].map((each) => each.textContent ?? '').join('').trim();
    if (label === '') faults.push(`no label for ${input.outerHTML}`);
    const legend = input.closest('fieldset')?.querySelector('legend')?.textContent ?? '';
    if (input.type === 'radio' && legend.trim() === '') faults.push(`no legend for ${input.outerHTML}`);
  }
  for (const button of document.querySelectorAll('button')) {
    if ((button.textContent ?? '').trim() === '') faults.push(`no name for ${button.outerHTML}`);
  }
  // 2.5.8: size of touch targets.
  for (const target of document.querySelectorAll('button, label')) {
    if (!target.checkVisibility()) continue;
    const { width, height } = target.getBoundingClientRect();
    if (width < 44 || height < 44) faults.push(`${name(target)} is ${width} x ${height} px`);
  }
  // 2.4.2, 3.1.1, 1.3.1: title, language and structure.
  if (document.title.trim() === '') faults.push('no title');
  if (document.documentElement.lang === '') faults.push('no language');
  if (document.querySelectorAll('main').length !== 1) faults.push('not one main part');
  if (document.querySelectorAll('h1').length !== 1) faults.push('not one heading');
  // 1.4.4, 1.4.10: the page can be zoomed and does not scroll horizontally.
  const viewport = document.querySelector('meta[name=viewport]')?.getAttribute('content') ?? '';
  if (!viewport.includes('width=device-width') || /user-scalable=no|maximum-scale/.test(viewport))
    faults.push(`viewport "${viewport}"`);
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) faults.push(`${scrollWidth - clientWidth} px wider than the window`);
  return faults;
})();
