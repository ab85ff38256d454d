import { expect, it, vi } from 'vitest';
import { useConsoleData } from '../../../src/console/data.ts';
import { SearchedChoices, useListed } from '../../../src/console/pages/campaigns/searched-select.tsx';
import { act, person, render, screen } from '../dom/render.tsx';
import { respond, success } from '../dom/responses.ts';

interface Listed {
  names: string[];
  hasMore: boolean;
}

function Choices() {
  const { data, searching } = useListed(({ search }) => useConsoleData<Listed>(`/names?search=${search}`));
  if (data.value === null) return null;
  const { names, hasMore } = data.value;
  const options = names.map((id) => ({ id, label: id }));
  const useName = () => ({ name: undefined, isDeleted: false });
  return (
    <SearchedChoices
      label="Names"
      searchLabel="Search"
      of={{ options, chosen: [], max: 5, useName, ...searching, hasMore, onChange: () => {} }}
    />
  );
}

it('reads once for a text that is typed, and its field remains when the text is removed', async () => {
  vi.useFakeTimers();
  const fetched = respond((path) =>
    success(
      path.endsWith('=') ? { names: ['ada', 'bob'], hasMore: true } : { names: ['ada'], hasMore: false },
    ),
  );
  await render(<Choices />);
  await act(() => vi.advanceTimersByTimeAsync(1000));
  const user = person();
  const field = screen.getByRole('searchbox', { name: 'Search' });
  await user.type(field, 'ada');
  await act(() => vi.advanceTimersByTimeAsync(1000));
  expect(fetched.mock.calls.map(([path]) => path)).toEqual(['/names?search=', '/names?search=ada']);
  await act(() => user.clear(field));
  expect(screen.getByRole('searchbox', { name: 'Search' })).toBe(field);
  await act(() => vi.advanceTimersByTimeAsync(1000));
  expect(screen.getByRole('searchbox', { name: 'Search' })).toBe(field);
});
