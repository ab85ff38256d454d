import { expect, it } from 'vitest';
import { lazyPage } from '../../../src/console/parts/lazy.tsx';
import { loadTexts, type Texts, TextsProvider, useTexts } from '../../../src/console/texts.ts';
import { render, screen } from '../dom/render.tsx';

function Title() {
  return <h1>{useTexts().t('contacts.question')}</h1>;
}
const LazyTitle = lazyPage(async () => Title);

it('appears with the texts of the pages also after a change to texts without them', async () => {
  const replace = await render(
    <TextsProvider value={await loadTexts('en')}>
      <LazyTitle />
    </TextsProvider>,
  );
  expect((await screen.findByRole('heading')).textContent).toBe('May I write to them?');
  // As texts are whose first file was loaded before a page was opened.
  const german = await loadTexts('de');
  let hasPages = false;
  const early: Texts = {
    ...german,
    t: (key, values) => (hasPages || key === 'app.loading' ? german.t(key, values) : key),
    hasPages: () => hasPages,
    addPages: async () => {
      hasPages = true;
    },
  };
  await replace(
    <TextsProvider value={early}>
      <LazyTitle />
    </TextsProvider>,
  );
  expect((await screen.findByRole('heading')).textContent).toBe('Darf ich ihnen schreiben?');
});
