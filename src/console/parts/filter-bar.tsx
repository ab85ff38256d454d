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
  /** Default: the label. */
  placeholder?: string;
  /** The shortest text that is searched. */
  minLength?: number;
  value: string;
  /** Whether the search waits for the Enter key or its button: it takes longer, or only whole values match, such as ids. */
  isExact?: boolean;
  /** `isTyping`: the text may be continued. */
  onSearch: (text: string, isTyping: boolean) => void;
}

/** A search that follows what is typed, without a button unless it waits for one. */
export function SearchField(props: SearchFieldProps) {
  const { label, placeholder = label, minLength, value, isExact = false, onSearch } = props;
  const { t } = useTexts();
  const input = useRef<HTMLInputElement>(null);
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  // The search was changed elsewhere, such as by the button that removes it.
  useEffect(() => {
    if (input.current !== null && input.current !== document.activeElement) input.current.value = value;
  }, [value]);
  const search = (isTyping: boolean) => {
    window.clearTimeout(timer.current);
    const text = input.current?.value.trim() ?? '';
    if (text !== value) onSearch(text, isTyping);
  };
  return (
    <form
      class="find-field"
      onSubmit={(event) => {
        event.preventDefault();
        search(false);
      }}
    >
      {isExact ? (
        <button
          type="submit"
          class="button ghost icon-only"
          aria-label={t('messages.search')}
          title={t('messages.search')}
        >
          <Icon name="search" />
        </button>
      ) : (
        <Icon name="search" />
      )}
      <input
        class="input"
        type="search"
        ref={input}
        aria-label={label}
        placeholder={placeholder}
        minLength={minLength}
        maxLength={320}
        autocomplete="off"
        spellcheck={false}
        defaultValue={value}
        onInput={({ currentTarget }) => {
          window.clearTimeout(timer.current);
          if (!isExact || currentTarget.value === '')
            timer.current = window.setTimeout(() => search(true), TYPING_MS);
        }}
      />
    </form>
  );
}

interface FilterSelectProps {
  label: string;
  options: readonly { value: string; name: string }[];
  /** Undefined: any. */
  chosen: string | undefined;
  onChange: (chosen: string | undefined) => void;
}

/** A filter by one of a few values. */
export function FilterSelect({ label, options, chosen, onChange }: FilterSelectProps) {
  const { t } = useTexts();
  return (
    <Popover
      buttonClass="button"
      button={
        <>
          {label}
          <Icon name="chevron-down" />
        </>
      }
    >
      {(close) =>
        [{ value: undefined, name: t('messages.any') }, ...options].map(({ value, name }) => (
          <MenuChoice
            key={value ?? ''}
            name={name}
            isChosen={value === chosen}
            onChoose={() => {
              close();
              onChange(value);
            }}
          />
        ))
      }
    </Popover>
  );
}

/** One of several values in a menu. */
export function MenuChoice(props: { name: string; isChosen: boolean; onChoose: () => void }) {
  return (
    <button
      type="button"
      class="menu-item"
      aria-current={props.isChosen ? 'true' : undefined}
      onClick={props.onChoose}
    >
      <span class="sentence">{props.name}</span>
      {props.isChosen && <Icon name="check" />}
    </button>
  );
}

interface MoreFiltersProps {
  onApply: (form: HTMLFormElement) => void;
  /** The fields. */
  children: ComponentChildren;
}

/** Less frequent filters, on request. */
export function MoreFilters({ onApply, children }: MoreFiltersProps) {
  const { t } = useTexts();
  return (
    <Popover
      buttonClass="button"
      popoverClass="more-filters"
      button={
        <>
          <Icon name="funnel" />
          <span class="wide-text">{t('messages.moreFilters')}</span>
        </>
      }
    >
      {(close) => (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            close();
            onApply(event.currentTarget);
          }}
        >
          {children}
          <div class="actions">
            <button type="submit" class="button primary">
              {t('app.filters.apply')}
            </button>
          </div>
        </form>
      )}
    </Popover>
  );
}

/** The filters that apply, each to be removed alone, or all of them. */
export function AppliedFilters({
  filters,
  onReset,
}: {
  filters: readonly { name: string; onRemove: () => void }[];
  onReset: () => void;
}) {
  const { t } = useTexts();
  return (
    <div class="applied">
      {filters.map(({ name, onRemove }) => (
        <AppliedFilter key={name} name={name} onRemove={onRemove} />
      ))}
      <button type="button" class="button ghost small" onClick={onReset}>
        {t('messages.reset')}
      </button>
    </div>
  );
}

interface FilterChoiceProps {
  label: string;
  options: readonly { value: string; name: string; count?: number }[];
  chosen: readonly string[];
  onChange: (chosen: readonly string[]) => void;
  /** How many rows have each value, in words; null: not known yet. Called while the options are shown. */
  useCounts?: () => ReadonlyMap<string, string> | null;
}

/** A filter by some of a few values. */
export function FilterChoice(props: FilterChoiceProps) {
  return (
    <Popover
      buttonClass="button"
      button={
        <>
          {props.label}
          <Icon name="chevron-down" />
        </>
      }
    >
      {() => <Choices {...props} />}
    </Popover>
  );
}

function Choices({ options, chosen, onChange, useCounts = noCounts }: FilterChoiceProps) {
  const { number } = useTexts();
  const counts = useCounts();
  return (
    <>
      {options.map(({ value, name, count }) => {
        const shown = counts?.get(value) ?? (count === undefined ? undefined : number(count));
        return (
          <label class="check menu-item" key={value}>
            <input
              class="tick"
              type="checkbox"
              checked={chosen.includes(value)}
              onChange={({ currentTarget: { checked } }) =>
                onChange(checked ? [...chosen, value] : chosen.filter((each) => each !== value))
              }
            />
            <span class="sentence">{name}</span>
            {shown !== undefined && <span class="filter-count">{shown}</span>}
          </label>
        );
      })}
    </>
  );
}

const noCounts = () => null;

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
