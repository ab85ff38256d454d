import { expect, it, vi } from 'vitest';
import { Time } from '../../../src/console/parts/time.tsx';
import { act, render, screen } from '../dom/render.tsx';

const NOW = new Date('2026-11-28T12:00:00.000Z');

it('is relative within a day and follows the clock, with one timer for all', async () => {
  vi.useFakeTimers({ now: NOW });
  const replace = await render(
    <>
      <Time at="2026-11-28T11:58:00.000Z" />
      <Time at="2026-11-28T11:00:00.000Z" />
      <Time at={null} />
    </>,
  );
  const texts = () => screen.getAllByRole('time').map(({ textContent }) => textContent);
  const [first, second] = texts();
  expect([first, second]).toEqual(['2 min. ago', '1 hr. ago']);
  expect(vi.getTimerCount()).toBe(1);
  await act(() => vi.advanceTimersByTimeAsync(5 * 60_000));
  expect(texts()[0]).toBe('7 min. ago');
  await replace(null);
  expect(vi.getTimerCount()).toBe(0);
});

it('has the whole time for those who need it', async () => {
  vi.useFakeTimers({ now: NOW });
  await render(<Time at="2025-01-31T09:05:07.000Z" />);
  const time = screen.getByRole('time');
  expect(time.getAttribute('datetime')).toBe('2025-01-31T09:05:07.000Z');
  expect(time.title).toMatch(/2025.*07/);
  expect(time.textContent).toMatch(/2025/);
});
