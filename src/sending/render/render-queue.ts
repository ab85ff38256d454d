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

interface Waiting {
  size: number;
  start(): void;
}

/**
 * Begins empty. Has no timers: work waits without a limit of time. Medium messages (up to 512 Ki characters) and large
 * ones have separate capacities, 2 Mi and 8 Mi characters.
 */
export function createRenderQueue(): RenderQueue {
  const medium = createFairSemaphore(MAX_MEDIUM_TOTAL);
  const large = createFairSemaphore(MAX_LARGE_TOTAL);
  return {
    run: (accountId, size, work) => {
      if (size <= MAX_SMALL_SIZE) return work();
      return (size <= MAX_MEDIUM_SIZE ? medium : large).run(accountId, size, work);
    },
  };
}

/** A message larger than `total` runs when no other one does. */
function createFairSemaphore(total: number): RenderQueue {
  /** Waiting messages by account; the accounts are in the order of their turns. */
  const waiting = new Map<string, Waiting[]>();
  let used = 0;

  const fits = (size: number) => used === 0 || used + size <= total;

  /** The first message waits until it fits; smaller ones do not overtake it, so it does not wait forever. */
  function startNext(): void {
    for (const [accountId, messages] of waiting) {
      const [first] = messages;
      if (first === undefined || !fits(first.size)) return;
      messages.shift();
      // Inserted again, the account is the last one.
      waiting.delete(accountId);
      if (messages.length > 0) waiting.set(accountId, messages);
      used += first.size;
      first.start();
    }
  }

  async function enter(accountId: string, size: number): Promise<void> {
    if (waiting.size === 0 && fits(size)) {
      used += size;
      return;
    }
    await new Promise<void>((start) => {
      const messages = waiting.get(accountId);
      if (messages === undefined) waiting.set(accountId, [{ size, start }]);
      else messages.push({ size, start });
    });
  }

  return {
    run: async (accountId, size, work) => {
      await enter(accountId, size);
      try {
        return await work();
      } finally {
        used -= size;
        startNext();
      }
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
