import { beforeEach, expect, it } from 'vitest';
import { request } from '../../../src/console/api.ts';
import { SessionConfirmation } from '../../../src/console/parts/session-confirmation.tsx';
import { act, person, render, SIGNED_IN, screen } from '../dom/render.tsx';
import { failure, respond, success } from '../dom/responses.ts';

const METHODS = { passkey: true, password: true, oidc: null };
let isConfirmed: boolean;
let sent: string[];

beforeEach(async () => {
  isConfirmed = false;
  sent = [];
  respond((path, body) => {
    sent.push(path);
    if (path === '/console/session') return success({ person: SIGNED_IN, methods: METHODS });
    if (path === '/console/session/reauthenticate') {
      isConfirmed = body.includes('right');
      return isConfirmed ? success({}) : failure(403, 'FORBIDDEN');
    }
    return isConfirmed ? success('done') : failure(403, 'FORBIDDEN', { reason: 'REAUTHENTICATION' });
  });
  await render(<SessionConfirmation onSignOut={() => {}} />);
});

async function enter(password: string): Promise<void> {
  const user = person();
  await user.clear(await screen.findByLabelText('Password'));
  await user.type(screen.getByLabelText('Password'), password);
  await user.clear(screen.getByLabelText(/code/i));
  await user.type(screen.getByLabelText(/code/i), '123456');
  await user.keyboard('{Enter}');
}

it('repeats the request after the person has proved who they are', async () => {
  const result = request<string>('/console/people', { method: 'DELETE' });
  await enter('right');
  expect(await result).toBe('done');
  expect(sent).toEqual([
    '/console/people',
    '/console/session',
    '/console/session/reauthenticate',
    '/console/people',
  ]);
  expect(screen.queryByRole('dialog')).toBeNull();
});

it('lets the person try again', async () => {
  const result = request<string>('/console/people', { method: 'DELETE' });
  await enter('wrong');
  await screen.findByText(/The server refused/);
  await enter('right');
  expect(await result).toBe('done');
});

it('fails the request when the person cancels', async () => {
  const result = request<string>('/console/people', { method: 'DELETE' });
  const failed = expect(result).rejects.toMatchObject({ reason: 'REAUTHENTICATION' });
  await screen.findByRole('dialog');
  await person().click(screen.getByRole('button', { name: 'Go back' }));
  await failed;
  expect(sent).not.toContain('/console/session/reauthenticate');
});

it('asks once when two requests need it', async () => {
  const first = request<string>('/console/people', { method: 'DELETE' });
  await screen.findByRole('dialog');
  await expect(request('/console/keys', { method: 'DELETE' })).rejects.toMatchObject({
    reason: 'REAUTHENTICATION',
  });
  await enter('right');
  expect(await first).toBe('done');
  await act(() => {});
});
