import { beforeEach, expect, it, vi } from 'vitest';
import { Toasts, toast } from '../../../src/console/parts/toast.tsx';
import { act, person, render, screen, within } from '../dom/render.tsx';

const shown = () =>
  [...screen.getByRole('status').querySelectorAll('p')].map(({ textContent }) => textContent);
const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

beforeEach(async () => {
  vi.useFakeTimers();
  await render(<Toasts />);
});

it('shows at most three, the newest, for five seconds', async () => {
  for (const text of ['one', 'two', 'three', 'four']) await act(() => toast(text));
  expect(shown()).toEqual(['two', 'three', 'four']);
  await pass(4999);
  expect(shown()).toEqual(['two', 'three', 'four']);
  await pass(1);
  expect(shown()).toEqual([]);
});

it('keeps an error until it is closed', async () => {
  await act(() => toast('It failed.', { isBad: true }));
  await pass(60_000);
  expect(shown()).toEqual(['It failed.']);
  await person().click(screen.getByRole('button', { name: 'Close' }));
  expect(shown()).toEqual([]);
});

it('stays while it has the focus, for those who need longer', async () => {
  await act(() => toast('Saved.'));
  await act(() => screen.getByRole('button', { name: 'Close' }).focus());
  await pass(60_000);
  expect(shown()).toEqual(['Saved.']);
  await act(() => screen.getByRole('button', { name: 'Close' }).blur());
  await pass(5000);
  expect(shown()).toEqual([]);
});

it('undoes what was done, once', async () => {
  const undo = vi.fn();
  await act(() => toast('Removed.', { undo }));
  await person().click(within(screen.getByRole('status')).getByRole('button', { name: 'Undo' }));
  expect(undo).toHaveBeenCalledOnce();
  expect(shown()).toEqual([]);
});
