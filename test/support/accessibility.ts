import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';

const CHECK = readFileSync(new URL('accessibility-in-page.js', import.meta.url), 'utf8');

/**
 * What a page must keep for everybody to be able to use it (WCAG 2.2 AA), as far as a program can see it:
 * returns every fault in words, none when all is well. Needs a window in which scripts may run.
 */
export function accessibilityFaults(page: Page): Promise<string[]> {
  return page.evaluate(CHECK);
}

/** 2.4.7: whether what has the focus shows it. */
export function showsFocus(page: Page): Promise<boolean> {
  return page.evaluate(`(() => {
    const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
    return document.activeElement !== document.body && outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
  })()`);
}
