import { useRef, useState } from 'preact/hooks';
import type { Data } from '../../data.ts';
import { useTexts } from '../../texts.ts';

interface Option {
  id: string;
  label: string;
}

/** What can be chosen in a field. */
export interface Selectable {
  options: Option[];
  /** The stored choice, which need not be among the options; null: none, or it does not exist any more. */
  chosen: Option | null;
  /** Whether the stored choice does not exist any more. */
  isDeleted: boolean;
  /** The text that is searched in the names of options. */
  search: string;
  onSearch(text: string): void;
  /** Whether there are more than the options. */
  hasMore: boolean;
  onChoose(id: string): void;
}

interface SearchedSelectProps {
  label: string;
  searchLabel: string;
  of: Selectable;
}

/** A choice, with a search if there are more options than are listed. */
export function SearchedSelect({ label, searchLabel, of }: SearchedSelectProps) {
  const { t } = useTexts();
  const { options, chosen, isDeleted, search, onSearch, hasMore, onChoose } = of;
  // It remains after a choice: the position of the others does not change under the keys.
  const [hasPlaceholder] = useState(chosen === null);
  const listed =
    chosen === null || options.some(({ id }) => id === chosen.id) ? options : [chosen, ...options];
  return (
    <>
      {(hasMore || search !== '') && (
        <label class="field">
          {searchLabel}
          <input
            class="input"
            type="search"
            maxLength={200}
            value={search}
            onInput={({ currentTarget }) => onSearch(currentTarget.value)}
          />
        </label>
      )}
      <label class="field">
        {label}
        <select
          class="select"
          required
          value={chosen?.id ?? ''}
          onChange={({ currentTarget: { value } }) => {
            if (value !== '') onChoose(value);
          }}
        >
          {(hasPlaceholder || chosen === null) && (
            <option value="" disabled={chosen !== null}>
              {t(isDeleted ? 'campaigns.deletedChoice' : 'campaigns.noChoice')}
            </option>
          )}
          {listed.map((each) => (
            <option value={each.id} key={each.id}>
              {each.label}
            </option>
          ))}
        </select>
      </label>
    </>
  );
}

/** The options of a choice whose names have a text. The last ones remain while others are read. `useSearch`: reads them. */
export function useListed<T>(useSearch: (parameters: { limit: number; search: string }) => Data<T>): {
  data: Data<T>;
  search: string;
  onSearch(text: string): void;
} {
  const [search, setSearch] = useState('');
  const data = useSearch({ limit: 50, search });
  const last = useRef(data.value);
  if (data.value !== null) last.current = data.value;
  return { data: { ...data, value: last.current }, search, onSearch: setSearch };
}
