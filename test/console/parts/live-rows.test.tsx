import { expect, it } from 'vitest';
import { LiveRows } from '../../../src/console/parts/live-rows.tsx';
import { person, render, screen } from '../dom/render.tsx';

const list = (rows: readonly string[], of = '/messages', changes = 0) => (
  <LiveRows of={of} rows={rows} isStale={false} keyOf={(row) => row} changes={changes}>
    {(shown) => (
      <ul>
        {shown.map((row) => (
          <li key={row}>{row}</li>
        ))}
      </ul>
    )}
  </LiveRows>
);
const shown = () => screen.queryAllByRole('listitem').map(({ textContent }) => textContent);

it('shows new rows when the person wants them', async () => {
  const replace = await render(list(['b', 'a']));
  expect(shown()).toEqual(['b', 'a']);
  await replace(list(['d', 'c', 'b', 'a']));
  expect(shown()).toEqual(['b', 'a']);
  await person().click(screen.getByRole('button', { name: '2 new' }));
  expect(shown()).toEqual(['d', 'c', 'b', 'a']);
  expect(screen.queryByRole('button')).toBeNull();
});

it('begins again with other filters', async () => {
  const replace = await render(list(['a']));
  await replace(list(['b', 'c'], '/messages?status=sent'));
  expect(shown()).toEqual(['b', 'c']);
});

it('shows what the person added, once it was read', async () => {
  const before = ['b', 'a'];
  const replace = await render(list(before));
  await replace(list(before, '/messages', 1));
  expect(shown()).toEqual(['b', 'a']);
  await replace(list(['c', 'b', 'a'], '/messages', 1));
  expect(shown()).toEqual(['c', 'b', 'a']);
  await replace(list(['d', 'c', 'b', 'a'], '/messages', 1));
  expect(shown()).toEqual(['c', 'b', 'a']);
});
