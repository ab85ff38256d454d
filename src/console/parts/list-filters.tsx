import type { ComponentChildren } from 'preact';
import { useNavigation } from '../routing.ts';
import { useTexts } from '../texts.ts';
import { type DateRange, DateRangeFilter, useRangeText } from './date-range.tsx';
import { AppliedFilters, FilterBar, FilterChoice, FilterSelect, SearchField } from './filter-bar.tsx';
import { SavedViews } from './saved-views.tsx';

/** The filters of a list as they are in its address. */
export type FilterQuery = Readonly<Record<string, string | undefined>>;

/** A filter by a parameter of the address. Without `options` it is set elsewhere, and shown while it applies. */
export interface ListFilter {
  name: string;
  label: string;
  options?: readonly { value: string; name: string }[];
  /** Several values, separated by commas in the address. */
  isSeveral?: true;
  /** With several values: how many rows have each, in words; called while the options are shown. */
  useCounts?: () => ReadonlyMap<string, string> | null;
  /** A value in words; default: the name of its option, or the value. */
  shown?: (value: string) => string;
}

interface ListFiltersProps {
  /** The page. */
  path: string;
  query: FilterQuery;
  search?: {
    name: string;
    label: string;
    placeholder?: string;
    minLength?: number;
    isExact?: true;
    /** What the search means, in words, once it applies. */
    shown?: (value: string) => string;
  };
  filters: readonly ListFilter[];
  /** Whether it has a period: `period`, `from` and `to` of the address. */
  hasPeriod?: true;
  /** Whether the list is about the installation, not about an account. */
  isInstallation?: true;
  /** Whether they cannot be saved as views: the list is part of another page. */
  hasNoViews?: true;
  /** In place of showing the list with other filters. */
  onChange?: (query: FilterQuery) => void;
  /** Further filters, such as `MoreFilters`. */
  children?: ComponentChildren;
  /** At the end, such as the export. */
  end?: ComponentChildren;
}

const NO_RANGE: Required<DateRange> = { period: undefined, from: undefined, to: undefined };

/** The filters of a list, in its address: those that apply can be removed one by one. */
export function ListFilters(props: ListFiltersProps) {
  const {
    path,
    query,
    search,
    filters,
    hasPeriod,
    isInstallation = false,
    hasNoViews,
    onChange,
    children,
    end,
  } = props;
  const { href, go } = useNavigation();
  const show = (next: FilterQuery, isTyping = false) =>
    onChange === undefined ? go(href(path, next), { replace: isTyping }) : onChange(next);
  const change = (changed: FilterQuery, isTyping = false) => show({ ...query, ...changed }, isTyping);
  return (
    <FilterBar
      end={
        <>
          {!hasNoViews && <SavedViews path={path} query={query} isInstallation={isInstallation} />}
          {end}
        </>
      }
    >
      {search !== undefined && (
        <SearchField
          label={search.label}
          {...(search.placeholder === undefined ? {} : { placeholder: search.placeholder })}
          {...(search.minLength === undefined ? {} : { minLength: search.minLength })}
          isExact={search.isExact === true}
          value={query[search.name] ?? ''}
          onSearch={(text, isTyping) => change({ [search.name]: text || undefined }, isTyping)}
        />
      )}
      {filters.map(
        ({ name, label, options, isSeveral, useCounts }) =>
          options !== undefined &&
          (isSeveral ? (
            <FilterChoice
              key={name}
              label={label}
              options={options}
              {...(useCounts === undefined ? {} : { useCounts })}
              chosen={valuesOf(query[name])}
              onChange={(chosen) => change({ [name]: chosen.join(',') || undefined })}
            />
          ) : (
            <FilterSelect
              key={name}
              label={label}
              options={options}
              chosen={query[name]}
              onChange={(chosen) => change({ [name]: chosen })}
            />
          )),
      )}
      {hasPeriod && <DateRangeFilter chosen={query} onChange={(range) => change({ ...range })} />}
      {children}
      <Applied {...props} onRemove={change} onReset={() => show({})} />
    </FilterBar>
  );
}

function valuesOf(value: string | undefined): string[] {
  return value === undefined ? [] : value.split(',').filter(Boolean);
}

interface AppliedProps extends ListFiltersProps {
  onRemove: (changed: FilterQuery) => void;
  onReset: () => void;
}

/** The filters that apply. */
function Applied({ query, search, filters, hasPeriod, onRemove, onReset }: AppliedProps) {
  const { t } = useTexts();
  const range = useRangeText(query);
  const searched = search === undefined ? undefined : query[search.name];
  const applied = filters.flatMap(({ name, label, options, isSeveral, shown }) => {
    const value = query[name];
    const values = isSeveral ? valuesOf(value) : [value].filter((each) => each !== undefined);
    const textOf =
      shown ?? ((each: string) => options?.find((option) => option.value === each)?.name ?? each);
    return values.map((each) => ({
      name: `${label}: ${textOf(each)}`,
      onRemove: () => onRemove({ [name]: values.filter((other) => other !== each).join(',') || undefined }),
    }));
  });
  if (search?.shown !== undefined && searched !== undefined)
    applied.unshift({ name: search.shown(searched), onRemove: () => onRemove({ [search.name]: undefined }) });
  if (hasPeriod && range !== null)
    applied.push({ name: `${t('app.period')}: ${range}`, onRemove: () => onRemove({ ...NO_RANGE }) });
  return applied.length > 0 || searched !== undefined ? (
    <AppliedFilters filters={applied} onReset={onReset} />
  ) : null;
}
