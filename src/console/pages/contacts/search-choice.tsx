import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { countSearch, type WholeSearch } from './whole-search.ts';

/** The choice of all contacts of a search, on every page. */
export interface SearchChoice {
  /** Null: they are not chosen. */
  whole: WholeSearch | null;
  /** The number so far, while they are counted; null: they are not. */
  counted: number | null;
  /** Takes the choice back, or stops counting. */
  clear(): void;
  /** The button that counts and chooses them. */
  offer: ComponentChildren;
  /** Why they could not be counted. */
  outcome: ComponentChildren;
}

interface SearchChoiceOptions {
  filters: Readonly<Record<string, string | undefined>>;
  /** Whether all contacts of the page are chosen, and the search has other pages. */
  isOffered: boolean;
}

/**
 * Counts through the API, page by page, when the offered button is pressed; `clear` and unmounting abort it. A choice
 * does not follow later `filters`: the component that uses it has a `key` of the page's address.
 */
export function useSearchChoice({ filters, isOffered }: SearchChoiceOptions): SearchChoice {
  const { t } = useTexts();
  const { accountId } = useMember();
  const [whole, setWhole] = useState<WholeSearch | null>(null);
  const [counted, setCounted] = useState<number | null>(null);
  const { outcome, run } = useAction();
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const count = () =>
    run(async () => {
      const { signal } = (abort.current = new AbortController());
      setCounted(0);
      try {
        const found = await countSearch({ accountId, filters, signal, onCount: setCounted });
        if (found !== null) setWhole(found);
      } finally {
        if (!signal.aborted) setCounted(null);
      }
      return '';
    });
  const isSearch = Object.values(filters).some((value) => value !== undefined);
  return {
    whole,
    counted,
    clear: () => {
      abort.current?.abort();
      setCounted(null);
      setWhole(null);
    },
    offer: isOffered && whole === null && counted === null && (
      <button class="button" type="button" onClick={() => void count()}>
        {t(isSearch ? 'contacts.chooseSearch' : 'contacts.chooseAccount')}
      </button>
    ),
    outcome: outcome?.failed === true && <Outcome of={outcome} />,
  };
}
