import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';

const CHECK = readFileSync(new URL('accessibility-checks.js', import.meta.url), 'utf8');

/**
 * Checks a page against the criteria of WCAG 2.2 AA that a program can decide; returns a description of each
 * fault. Scripts must be enabled in the window.
 */
export function accessibilityFaults(page: Page): Promise<string[]> {
  return page.evaluate(CHECK);
}

/** WCAG 2.4.7: whether the focus is visible. */
export function showsFocus(page: Page): Promise<boolean> {
  return page.evaluate(`(() => {
    const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
    return document.activeElement !== document.body && outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
  })()`);
}
