import { beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiError } from '../../src/console/api.ts';
import {
  Chip,
  Confirmed,
  Failure,
  Loaded,
  Outcome,
  RowActions,
  Status,
  Table,
  useAction,
} from '../../src/console/parts.tsx';
import { InConsole, person, render, screen } from './dom/render.tsx';

const error = (status: number, code: string, detail: { reason?: string; name?: string } = {}) =>
  new ApiError(status, {
    error: { code, message: 'What the server states.', details: [detail] },
    requestId: 'request-1',
  });

beforeEach(() => window.history.replaceState(null, '', '/console/messages/m1?account=account-1'));

describe('a failure', () => {
  const shown = async (of: ApiError, retry = () => {}) => {
    await render(
      <InConsole>
        <Failure error={of} retry={retry} />
      </InConsole>,
    );
    return screen.getByRole('alert').textContent;
  };

  it('offers another attempt only if it may succeed', async () => {
    const retry = vi.fn();
    await shown(error(503, 'UNAVAILABLE'), retry);
    await person().click(screen.getByRole('button', { name: 'Try again' }));
    expect(retry).toHaveBeenCalledOnce();
  });

  it.each([
    ['missing', error(404, 'NOT_FOUND'), 'Back to the list'],
    ['invalid', error(400, 'VALIDATION_ERROR'), 'Start again without filters'],
  ])('leads from what is %s to the list', async (_, of, link) => {
    await shown(of);
    expect(screen.queryByRole('button')).toBeNull();
    expect(screen.getByRole<HTMLAnchorElement>('link', { name: link }).pathname).toBe('/console/messages');
  });

  it('names the roles that have the permission', async () => {
    expect(await shown(error(403, 'FORBIDDEN', { reason: 'PERMISSION', name: 'people' }))).toMatch(/Owner/);
  });

  it('has the id of the request, for the log', async () => {
    expect(await shown(error(500, 'INTERNAL_ERROR'))).toContain('request-1');
  });
});

describe('data', () => {
  const data = (value: string | null, of: ApiError | null = null) => (
    <InConsole>
      <Loaded data={{ value, error: of, reload: () => {} }} isList>
        {(text) => <p>{text}</p>}
      </Loaded>
    </InConsole>
  );

  it('is rows without content until it is there', async () => {
    await render(data(null));
    expect(screen.getByRole('status').textContent).toBe('Loading…');
  });

  it('stays, but cannot be used, while that of other filters is loaded', async () => {
    const replace = await render(data('old'));
    await replace(data(null));
    expect(screen.getByText('old').parentElement?.inert).toBe(true);
    await replace(data('new'));
    expect(screen.queryByText('old')).toBeNull();
    expect(screen.getByText('new').parentElement?.inert).toBe(false);
  });

  it('stays with the error, when it could not be read again', async () => {
    await render(data('old', error(503, 'UNAVAILABLE')));
    expect(screen.getByText('old')).toBeDefined();
    expect(screen.getByRole('alert')).toBeDefined();
  });
});

describe('a table', () => {
  it('names its columns, also on narrow screens, and which are at the end', async () => {
    await render(
      <Table label="People" heads={['Name', { text: 'Mails', end: true }, { text: 'Actions', unseen: true }]}>
        <tr>
          <td>Ada</td>
          <td>3</td>
          <td />
        </tr>
      </Table>,
    );
    expect(screen.getAllByRole('columnheader').map(({ textContent }) => textContent)).toEqual([
      'Name',
      'Mails',
      'Actions',
    ]);
    expect(screen.getByRole('region', { name: 'People' }).dataset['end']).toBe('2 3');
    expect(screen.getByRole('table').style.getPropertyValue('--head-1')).toBe('"Name"');
  });

  it('shows names with quotes and backslashes as they are, on narrow screens, too', async () => {
    await render(
      <Table label="Names" heads={['a"b\\c']}>
        {null}
      </Table>,
    );
    expect(screen.getByRole('table').style.getPropertyValue('--head-1')).toBe('"a\\22 b\\5c c"');
  });
});

it.each([
  ['delivered', 'ok'],
  ['paused', 'warn'],
  ['failing', 'bad'],
  ['sending', 'info'],
  ['an unknown status', 'idle'],
  ['constructor', 'idle'],
])('shows the status "%s" as %s', async (name, kind) => {
  await render(
    <>
      <Status name={name} />
      <Chip kind="ok">Other</Chip>
    </>,
  );
  expect(document.querySelector('.chip')?.classList.contains(kind)).toBe(true);
});

describe('an action that asks first', () => {
  it('is not done when the person cancels', async () => {
    const action = vi.fn(() => Promise.resolve());
    await render(<Confirmed label="Delete" question="Delete it?" isDanger action={action} />);
    const user = person();
    await user.click(screen.getByRole('button', { name: 'Delete' }));
    expect(screen.getByRole('dialog', { name: 'Delete' }).textContent).toContain('Delete it?');
    await user.click(screen.getByRole('button', { name: 'Go back' }));
    expect(action).not.toHaveBeenCalled();
    expect(screen.queryByRole('dialog')).toBeNull();
  });

  it('gets the reason that was given', async () => {
    const action = vi.fn((_reason: string) => Promise.resolve());
    await render(<Confirmed label="Pause" question="Pause it?" reason="Reason" action={action} />);
    const user = person();
    await user.click(screen.getByRole('button', { name: 'Pause' }));
    await user.type(screen.getByRole('textbox', { name: 'Reason' }), 'Too many bounces');
    await user.keyboard('{Enter}');
    expect(action.mock.calls).toEqual([['Too many bounces']]);
  });

  it('opens from the menu of a row', async () => {
    const action = vi.fn(() => Promise.resolve());
    await render(<RowActions label="Ada" actions={[{ label: 'Remove', question: 'Remove Ada?', action }]} />);
    const user = person();
    await user.click(screen.getByRole('button', { name: 'Actions for Ada' }));
    await user.click(screen.getByRole('button', { name: 'Remove' }));
    const dialog = screen.getByRole('dialog', { name: 'Remove' });
    expect(dialog.textContent).toContain('Remove Ada?');
    await user.click(screen.getAllByRole('button', { name: 'Remove' })[0] ?? dialog);
    expect(action).toHaveBeenCalledOnce();
  });
});

describe('the result of an action', () => {
  function Action({ action }: { action: () => Promise<string> }) {
    const { outcome, run } = useAction();
    return (
      <>
        <button type="button" onClick={() => void run(action)}>
          Run
        </button>
        <Outcome of={outcome} />
      </>
    );
  }
  const result = async (action: () => Promise<string>) => {
    await render(<Action action={action} />);
    await person().click(screen.getByRole('button'));
    return screen.findByText(/./, { selector: '[role=status]' });
  };

  it('is its text', async () => {
    expect((await result(() => Promise.resolve('Saved.'))).textContent).toBe('Saved.');
  });

  it('is the sentence of the server, if it refused', async () => {
    const shown = await result(() => Promise.reject(error(409, 'CONFLICT')));
    expect(shown.textContent).toBe('What the server states.');
    expect(shown.classList.contains('bad')).toBe(true);
  });

  it('is that the server did not respond', async () => {
    expect((await result(() => Promise.reject(new ApiError(0, {})))).textContent).toMatch(/did not respond/);
  });
});
