import { readFileSync } from 'node:fs';
import type { Locator } from 'playwright-core';
import { expect } from 'vitest';
import { PHONE, type Window } from '../support/browser.ts';

const IN_PAGE = readFileSync(new URL('input-page.js', import.meta.url), 'utf8');

/** What a person uses to operate a page. */
export interface Input {
  /** Activates a link, a button, a summary, a checkbox or a radio button. */
  press(target: Locator): Promise<void>;
  /** Replaces the text of a field. */
  enter(target: Locator, text: string): Promise<void>;
  /** Chooses the option of a select whose text begins with `option`. */
  choose(target: Locator, option: string): Promise<void>;
  /** The events of input since the page was loaded that this input does not cause. */
  otherEvents(): Promise<string[]>;
}

/** Counts what a person presses and chooses; text that is entered is not counted. */
export function counted(input: Input): { input: Input; clicks(): number } {
  let clicks = 0;
  return {
    input: {
      ...input,
      press: (target) => {
        clicks++;
        return input.press(target);
      },
      choose: (target, option) => {
        clicks++;
        return input.choose(target, option);
      },
    },
    clicks: () => clicks,
  };
}

/** More than any page has elements that Tab reaches. */
const MAX_STEPS = 200;

/** Only keys: elements are reached with Tab from where the focus is, and the focus must be visible there. */
export async function keyboard({ page, context }: Window): Promise<Input> {
  await context.addInitScript(IN_PAGE);
  /** Moves the focus to the target; returns its type. */
  const reach = async (target: Locator): Promise<string> => {
    let last = '';
    let turns = 0;
    const nextStep = () => target.evaluate((element) => element.ownerDocument.defaultView.nextStep(element));
    for (let steps = 0; steps < MAX_STEPS; steps++) {
      const { key, times, kind, hidden } = await nextStep();
      if (key === '') {
        // What is loaded may move the target.
        if (hidden.length > 0)
          await expect
            .poll(async () => (await nextStep()).hidden, { message: target.toString() })
            .toEqual([]);
        return kind;
      }
      // Before the target and after it, but never on it.
      if (last !== '' && key !== last && ++turns > 1) break;
      last = key;
      // Held down, which takes a third of the time.
      const [pressed, modifier] = key.split('+').toReversed();
      if (modifier !== undefined) await page.keyboard.down(modifier);
      await Promise.all(Array.from({ length: times }, () => page.keyboard.down(pressed)));
      await page.keyboard.up(pressed);
      if (modifier !== undefined) await page.keyboard.up(modifier);
    }
    throw new Error(`Tab does not reach ${target.toString()}`);
  };
  return {
    press: async (target) => {
      const kind = await reach(target);
      if (kind === 'radio' && (await target.isChecked())) return;
      await page.keyboard.press(kind === 'radio' || kind === 'checkbox' ? 'Space' : 'Enter');
    },
    enter: async (target, text) => {
      await reach(target);
      await page.keyboard.press('ControlOrMeta+A');
      await page.keyboard.insertText(text);
    },
    choose: async (target, option) => {
      await reach(target);
      const options = await optionsOf(target, option);
      const wanted = options.findIndex((text) => text.startsWith(option));
      expect(wanted, `${option} of ${target.toString()}`).not.toBe(-1);
      const selected = () => target.evaluate((select) => select.selectedIndex);
      const first: number = await selected();
      for (let index = first; index !== wanted; index += Math.sign(wanted - first))
        await page.keyboard.press(wanted > first ? 'ArrowDown' : 'ArrowUp');
      expect(await selected(), `${option} of ${target.toString()}`).toBe(wanted);
    },
    otherEvents: async () => (await events(page)).filter((type) => type !== 'keydown'),
  };
}

/** A mouse, or a finger on a phone. Text comes from the keyboard of the phone, which causes no events of keys. */
export async function pointer({ page, context }: Window): Promise<Input> {
  await context.addInitScript(IN_PAGE);
  const isTouch = page.viewportSize()?.width === PHONE.width;
  const press = (target: Locator, options = {}) => (isTouch ? target.tap(options) : target.click(options));
  return {
    press,
    enter: async (target, text) => {
      await press(target);
      await target.fill(text);
    },
    choose: async (target, option) => {
      // The list of options is one of the system: only whether it can be opened is checked.
      await press(target, { trial: true });
      const options = await optionsOf(target, option);
      await target.selectOption({ label: options.find((text) => text.startsWith(option)) ?? option });
    },
    otherEvents: async () => (await events(page)).filter((type) => type === 'keydown'),
  };
}

/** The texts of the options of a select, once they include one. */
async function optionsOf(target: Locator, option: string): Promise<string[]> {
  const options = target.locator('option');
  await options.filter({ hasText: option }).first().waitFor({ state: 'attached' });
  return options.allTextContents();
}

/** The types of events of input since the page was loaded. */
function events(page: Window['page']): Promise<string[]> {
  return page.evaluate('[...inputEvents]');
}
