import { createFairLimit } from '../../core/concurrency/gate.ts';
import { MAX_SLOTS } from '../../mail/template.ts';
import type { TemplateContent } from '../../templates/source.ts';
import { MAX_STORED_CHARACTERS } from '../encode.ts';
import type { ParsedSend } from '../request.ts';
import { MAX_RENDERED } from './render.ts';

/**
 * Limits the memory for messages that are being checked, rendered and stored. Rendering takes many times the size of a
 * message, and requests are rendered concurrently in slices: without a limit, a few dozen large messages exhaust the
 * heap. Small messages never wait. Accounts whose messages wait take turns.
 */
export interface RenderQueue {
  /** Runs `work` when there is capacity for a message of `size` characters. */
  run<T>(accountId: string, size: number, work: () => Promise<T>): Promise<T>;
}

/** Messages up to this size never wait: their number is bounded by the concurrent requests of each account. */
const MAX_SMALL_SIZE = 64 * 1024;
/** Messages up to this size do not wait for larger ones. */
const MAX_MEDIUM_SIZE = 512 * 1024;
/** Characters of medium messages, and of large ones, that are rendered at a time. */
const MAX_MEDIUM_TOTAL = 2 * 1024 * 1024;
const MAX_LARGE_TOTAL = 8 * 1024 * 1024;

/**
 * Begins empty. Has no timers: work waits without a limit of time. Medium messages (up to 512 Ki characters) and large
 * ones have separate capacities, 2 Mi and 8 Mi characters.
 */
export function createRenderQueue(): RenderQueue {
  const medium = createFairLimit({ concurrency: MAX_MEDIUM_TOTAL, order: 'turns' });
  const large = createFairLimit({ concurrency: MAX_LARGE_TOTAL, order: 'turns' });
  return {
    run: (accountId, size, work) => {
      if (size <= MAX_SMALL_SIZE) return work();
      return (size <= MAX_MEDIUM_SIZE ? medium : large).run(accountId, work, size);
    },
  };
}

/**
 * An upper bound of the characters that are rendered and encoded: each variable counts like the longest one. `contents`:
 * the number of contents that are encoded; above MAX_STORED_CHARACTERS together they are refused.
 */
export function renderedSize(
  { attachments, alternatives, variables }: Pick<ParsedSend, 'attachments' | 'alternatives' | 'variables'>,
  { html, text }: Pick<TemplateContent, 'html' | 'text'>,
  contents: number,
): number {
  const encoded = [...attachments, ...alternatives].reduce((sum, { content }) => sum + content.length, 0);
  const source = html.length + (text?.length ?? 0);
  const filled = (slotsIn(html) + slotsIn(text ?? '')) * longestText(variables);
  const one = encoded + source + Math.min(filled, MAX_RENDERED);
  return Math.max(one, Math.min(one * contents, MAX_STORED_CHARACTERS));
}

function slotsIn(template: string): number {
  let slots = 0;
  for (let at = template.indexOf('{{'); at >= 0 && slots < MAX_SLOTS; at = template.indexOf('{{', at + 2))
    slots++;
  return slots;
}

function longestText(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce<number>((longest, inner) => Math.max(longest, longestText(inner)), 0);
}
