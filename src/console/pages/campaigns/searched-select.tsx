import { useRef, useState } from 'preact/hooks';
import type { Data } from '../../data.ts';
import { Field } from '../../parts/field.tsx';
import { Icon } from '../../parts/icon/icon.tsx';
import { useRested } from '../../parts/rested.ts';
import { useTexts } from '../../texts.ts';

interface Option {
  id: string;
  label: string;
}

interface Searching {
  /** The text that is searched in the names of options. */
  search: string;
  /** Whether a text is searched, or the options are still those of one. */
  isSearched: boolean;
  onSearch(text: string): void;
}

/** What can be chosen in a field. */
export interface Selectable extends Searching {
  options: Option[];
  /** The stored choice, which need not be among the options; null: none, or it does not exist any more. */
  chosen: Option | null;
  /** Whether the stored choice does not exist any more. */
  isDeleted: boolean;
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
  const { options, chosen, isDeleted, hasMore, onChoose } = of;
  // It remains after a choice: the position of the others does not change under the keys.
  const [hasPlaceholder] = useState(chosen === null);
  const listed =
    chosen === null || options.some(({ id }) => id === chosen.id) ? options : [chosen, ...options];
  return (
    <>
      {(hasMore || of.isSearched) && <SearchField label={searchLabel} of={of} />}
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

function SearchField({ label, of: { search, onSearch } }: { label: string; of: Searching }) {
  return (
    <label class="field">
      {label}
      <input
        class="input"
        type="search"
        maxLength={200}
        value={search}
        onInput={({ currentTarget }) => onSearch(currentTarget.value)}
      />
    </label>
  );
}

/** The name of a choice that need not be among the options; undefined: it is not known. */
export interface OptionName {
  name: string | undefined;
  isDeleted: boolean;
}

/** What several can be chosen of in a field. */
interface SeveralSelectable extends Searching, Pick<Selectable, 'options' | 'hasMore'> {
  chosen: readonly string[];
  max: number;
  useName(id: string): OptionName;
  onChange(ids: string[]): void;
}

interface SearchedChoicesProps {
  label: string;
  hint?: string;
  searchLabel: string;
  of: SeveralSelectable;
}

/**
 * Several choices, each of which can be removed, and a list of the others. Arrow keys change the value of a select with
 * each press: what they reach is added with Enter, or when the field is left.
 */
export function SearchedChoices({ label, hint, searchLabel, of }: SearchedChoicesProps) {
  const { t } = useTexts();
  const { options, chosen, max, useName, hasMore, onChange } = of;
  const isByKeys = useRef(false);
  const [reached, setReached] = useState('');
  const add = (id: string) => {
    setReached('');
    if (id !== '') onChange([...(max === 1 ? [] : chosen), id]);
  };
  return (
    <>
      {(hasMore || of.isSearched) && <SearchField label={searchLabel} of={of} />}
      <Field label={label} {...(hint === undefined ? {} : { hint })}>
        {(control) => (
          <select
            {...control}
            class="select"
            value={reached}
            disabled={chosen.length >= max && max > 1}
            onPointerDown={() => {
              isByKeys.current = false;
            }}
            onKeyDown={(event) => {
              isByKeys.current = true;
              if (event.key !== 'Enter' || reached === '') return;
              event.preventDefault();
              add(reached);
            }}
            onBlur={() => {
              isByKeys.current = false;
              add(reached);
            }}
            onChange={({ currentTarget }) => {
              const { value } = currentTarget;
              if (isByKeys.current) return setReached(value);
              currentTarget.value = '';
              add(value);
            }}
          >
            <option value="">
              {t(chosen.length === 0 ? 'campaigns.noChoice' : 'campaigns.otherChoice')}
            </option>
            {options
              .filter(({ id }) => !chosen.includes(id))
              .map((each) => (
                <option value={each.id} key={each.id}>
                  {each.label}
                </option>
              ))}
          </select>
        )}
      </Field>
      {chosen.length > 0 && (
        <ul class="choices" aria-label={label}>
          {chosen.map((id) => (
            <Choice
              key={id}
              id={id}
              useName={useName}
              onRemove={() => onChange(chosen.filter((other) => other !== id))}
            />
          ))}
        </ul>
      )}
    </>
  );
}

/** One of several choices; pressing it removes it. */
function Choice({
  id,
  useName,
  onRemove,
}: {
  id: string;
  useName: SeveralSelectable['useName'];
  onRemove: () => void;
}) {
  const { t } = useTexts();
  const { name, isDeleted } = useName(id);
  const text = isDeleted ? t('campaigns.deletedChoice') : (name ?? id);
  const remove = t('campaigns.removeChoice', { name: text });
  return (
    <li>
      <button type="button" class="filter-chip" aria-label={remove} title={remove} onClick={onRemove}>
        {text}
        <Icon name="x" />
      </button>
    </li>
  );
}

/** The options of a choice whose names have a text. The last ones remain while others are read. `useSearch`: reads them. */
export function useListed<T>(useSearch: (parameters: { limit: number; search: string }) => Data<T>): {
  data: Data<T>;
  searching: Searching;
} {
  const [search, setSearch] = useState('');
  const rested = useRested(search);
  const data = useSearch({ limit: 50, search: rested });
  const last = useRef({ value: data.value, search: rested });
  if (data.value !== null) last.current = { value: data.value, search: rested };
  const isSearched = search !== '' || last.current.search !== '';
  return {
    data: { ...data, value: last.current.value },
    searching: { search, isSearched, onSearch: setSearch },
  };
}
