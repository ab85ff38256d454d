import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useTexts } from '../texts.ts';
import { Icon } from './icon/icon.tsx';
import { Popover } from './popover.tsx';
import './filter-bar.css';

/** How long the search waits for further characters. */
const TYPING_MS = 250;

/** The filters of a list, within its card. `end`: at its end, such as the export. */
export function FilterBar({ children, end }: { children: ComponentChildren; end?: ComponentChildren }) {
  return (
    <div class="filters" role="search">
      {children}
      {end !== undefined && <div class="end">{end}</div>}
    </div>
  );
}

interface SearchFieldProps {
  label: string;
  value: string;
  onSearch: (text: string) => void;
}

/** A search that follows what is typed, without a button. */
export function SearchField({ label, value, onSearch }: SearchFieldProps) {
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  return (
    <div class="find-field">
      <Icon name="search" />
      <input
        class="input"
        type="search"
        aria-label={label}
        placeholder={label}
        maxLength={320}
        autocomplete="off"
        spellcheck={false}
        defaultValue={value}
        onInput={({ currentTarget }) => {
          window.clearTimeout(timer.current);
          timer.current = window.setTimeout(() => onSearch(currentTarget.value.trim()), TYPING_MS);
        }}
      />
    </div>
  );
}

interface FilterChoiceProps {
  label: string;
  options: readonly { value: string; name: string; count?: number }[];
  chosen: readonly string[];
  onChange: (chosen: readonly string[]) => void;
}

/** A filter by some of a few values. */
export function FilterChoice({ label, options, chosen, onChange }: FilterChoiceProps) {
  const { number } = useTexts();
  return (
    <Popover
      buttonClass="button"
      button={
        <>
          <Icon name="funnel" />
          {label}
        </>
      }
    >
      {() =>
        options.map(({ value, name, count }) => (
          <label class="check menu-item" key={value}>
            <input
              class="tick"
              type="checkbox"
              checked={chosen.includes(value)}
              onChange={({ currentTarget: { checked } }) =>
                onChange(checked ? [...chosen, value] : chosen.filter((each) => each !== value))
              }
            />
            {name}
            {count !== undefined && <span class="filter-count">{number(count)}</span>}
          </label>
        ))
      }
    </Popover>
  );
}

/** A filter that applies; pressing it removes it. */
export function AppliedFilter({ name, onRemove }: { name: string; onRemove: () => void }) {
  const { t } = useTexts();
  return (
    <button
      type="button"
      class="filter-chip"
      aria-label={t('app.filters.remove', { name })}
      title={t('app.filters.remove', { name })}
      onClick={onRemove}
    >
      {name}
      <Icon name="x" />
    </button>
  );
}
