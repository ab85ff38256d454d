import type { DataOf } from '../operations.ts';
import { useTexts } from '../texts.ts';

type Reason = NonNullable<DataOf<'/web-setup/messages/{id}'>['reason']>;

/** Reasons that end by themselves: a message that is not tried again can be sent again later. */
const TEMPORARY: ReadonlySet<string> = new Set([
  'mailbox-full',
  'rate-limited',
  'greylisted',
  'network-error',
  'server-error',
] satisfies Reason[]);

/** The texts for reasons of failures, which are '' where there is none. */
export function useReasons() {
  const { t, named } = useTexts();
  const textOf = (prefix: string, reason: string) => {
    const text = named(prefix, reason);
    return text === reason ? '' : text;
  };
  return {
    /** Why the message was not delivered: the part of a sentence. */
    cause: (reason: string | undefined): string => (reason === undefined ? '' : textOf('cause', reason)),
    /** What can be done. `isFinal`: the message is not tried again. */
    remedy: (reason: string | undefined, isFinal = false): string => {
      if (reason === undefined) return '';
      return isFinal && TEMPORARY.has(reason) ? t('messages.verdict.final') : textOf('remedy', reason);
    },
  };
}
