import { expect, it, vi } from 'vitest';
import {
  AppliedFilters,
  FilterChoice,
  FilterSelect,
  SearchField,
} from '../../../src/console/parts/filter-bar.tsx';
import { act, person, render, screen } from '../dom/render.tsx';

const search = (props: {
  isExact?: boolean;
  value?: string;
  onSearch(text: string, isTyping: boolean): void;
}) => <SearchField label="Search" value="" {...props} />;

it('searches once, when no further character follows', async () => {
  vi.useFakeTimers();
  const onSearch = vi.fn();
  await render(search({ onSearch }));
  const user = person();
  await user.type(screen.getByRole('searchbox', { name: 'Search' }), ' ada ');
  expect(onSearch).not.toHaveBeenCalled();
  await act(() => vi.advanceTimersByTimeAsync(250));
  expect(onSearch.mock.calls).toEqual([['ada', true]]);
});

it('waits for the Enter key where only whole values match', async () => {
  vi.useFakeTimers();
  const onSearch = vi.fn();
  await render(search({ onSearch, isExact: true }));
  const user = person();
  await user.type(screen.getByRole('searchbox'), 'ada');
  await act(() => vi.advanceTimersByTimeAsync(10_000));
  expect(onSearch).not.toHaveBeenCalled();
  await user.keyboard('{Enter}');
  expect(onSearch.mock.calls).toEqual([['ada', false]]);
});

it('does not search after the page was left', async () => {
  vi.useFakeTimers();
  const onSearch = vi.fn();
  const replace = await render(search({ onSearch, value: 'old' }));
  await person().type(screen.getByRole('searchbox'), 'ada');
  await replace(null);
  await vi.advanceTimersByTimeAsync(1000);
  expect(onSearch).not.toHaveBeenCalled();
});

it('shows a search that was changed elsewhere, but never what is being typed', async () => {
  const onSearch = vi.fn();
  const replace = await render(search({ onSearch, value: 'ada' }));
  const input = screen.getByRole<HTMLInputElement>('searchbox');
  expect(input.value).toBe('ada');
  await replace(search({ onSearch, value: '' }));
  expect(input.value).toBe('');
  await person().type(input, 'gr');
  await replace(search({ onSearch, value: 'g' }));
  expect(input.value).toBe('gr');
});

it('filters by one of a few values, or by none', async () => {
  const onChange = vi.fn();
  const options = [
    { value: 'draft', name: 'Draft' },
    { value: 'sent', name: 'Sent' },
  ];
  await render(<FilterSelect label="Status" options={options} chosen="sent" onChange={onChange} />);
  const user = person();
  await user.click(screen.getByRole('button', { name: 'Status' }));
  expect(screen.getByRole('button', { current: true }).textContent).toBe('Sent');
  await user.click(screen.getByRole('button', { name: 'Draft' }));
  expect(onChange).toHaveBeenLastCalledWith('draft');
  expect(screen.queryByRole('button', { name: 'Draft' })).toBeNull();
  await user.click(screen.getByRole('button', { name: 'Status' }));
  await user.click(screen.getByRole('button', { name: 'Any' }));
  expect(onChange).toHaveBeenLastCalledWith(undefined);
});

it('filters by some values, each with its count', async () => {
  const onChange = vi.fn();
  const options = [
    { value: 'sent', name: 'Sent', count: 1200 },
    { value: 'failed', name: 'Failed', count: 3 },
  ];
  await render(<FilterChoice label="Status" options={options} chosen={['sent']} onChange={onChange} />);
  const user = person();
  await user.click(screen.getByRole('button', { name: 'Status' }));
  expect(screen.getByText('1,200')).toBeDefined();
  await user.click(screen.getByRole('checkbox', { name: /^Failed/ }));
  expect(onChange).toHaveBeenLastCalledWith(['sent', 'failed']);
  await user.click(screen.getByRole('checkbox', { name: /^Sent/ }));
  expect(onChange).toHaveBeenLastCalledWith([]);
});

it('removes one filter that applies, or all of them', async () => {
  const [onStatus, onReset] = [vi.fn(), vi.fn()];
  await render(<AppliedFilters filters={[{ name: 'Status: sent', onRemove: onStatus }]} onReset={onReset} />);
  const user = person();
  await user.click(screen.getByRole('button', { name: /Status: sent/ }));
  expect(onStatus).toHaveBeenCalledOnce();
  expect(onReset).not.toHaveBeenCalled();
  await user.click(screen.getAllByRole('button')[1] ?? document.body);
  expect(onReset).toHaveBeenCalledOnce();
});
