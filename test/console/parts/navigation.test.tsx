import { beforeEach, describe, expect, it } from 'vitest';
import { Pager } from '../../../src/console/parts/pager.tsx';
import { Stepper } from '../../../src/console/parts/stepper.tsx';
import { Tabs } from '../../../src/console/parts/tabs.tsx';
import { InConsole, render, screen } from '../dom/render.tsx';

beforeEach(() => window.history.replaceState(null, '', '/console/messages?account=a'));

it('marks the current tab', async () => {
  const tabs = [
    { name: 'Text', address: '?tab=text', isCurrent: false },
    { name: 'HTML', address: '?tab=html', isCurrent: true },
  ];
  await render(<Tabs label="Content" tabs={tabs} />);
  expect(screen.getByRole('link', { current: 'page' }).textContent).toBe('HTML');
});

it('marks the current step, those that are done, and links only those that can be opened', async () => {
  await render(
    <Stepper
      label="Steps"
      current={1}
      steps={[
        { name: 'Audience', isDone: true, address: '?step=audience' },
        { name: 'Content', isDone: false, address: '?step=content' },
        { name: 'Review', isDone: false, address: undefined },
      ]}
    />,
  );
  expect(screen.getAllByRole('link').map(({ textContent }) => textContent)).toEqual([
    'Audience (done)',
    'Content',
  ]);
  expect(screen.getByRole('link', { current: 'step' }).textContent).toBe('Content');
});

describe('the pages of a list', () => {
  const pager = (nextKey?: string) => (
    <InConsole>
      <Pager path="messages" filters={{ status: 'sent' }} nextKey={nextKey} />
    </InConsole>
  );
  const links = () => screen.queryAllByRole<HTMLAnchorElement>('link').map(({ search }) => search);

  it('have no links when there is only one', async () => {
    await render(pager());
    expect(links()).toEqual([]);
  });

  it('have a link to the next one, with the account and the filters', async () => {
    await render(pager('next'));
    expect(links()).toEqual(['?account=a&status=sent&lastKey=next']);
  });

  it('have a link back to the first one', async () => {
    window.history.replaceState(null, '', '/console/messages?account=a&lastKey=second');
    await render(pager());
    expect(links()).toEqual(['?account=a&status=sent']);
  });
});
