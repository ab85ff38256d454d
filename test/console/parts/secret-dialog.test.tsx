import { expect, it, vi } from 'vitest';
import { SecretDialog } from '../../../src/console/parts/secret-dialog.tsx';
import { person, render, screen } from '../dom/render.tsx';

const secrets = [{ label: 'Key', value: 'pr_secret', copyLabel: 'Copy the key' }];

it('is open until the person has stored the secret', async () => {
  const onStored = vi.fn();
  await render(<SecretDialog title="New key" secrets={secrets} onStored={onStored} />);
  const dialog = screen.getByRole<HTMLDialogElement>('dialog', { name: 'New key' });
  expect(dialog.textContent).toContain('pr_secret');
  // What the Escape key sends.
  expect(dialog.dispatchEvent(new Event('cancel', { cancelable: true }))).toBe(false);
  expect(dialog.open).toBe(true);
  await person().click(screen.getByRole('button', { name: 'I have stored it' }));
  expect(onStored).toHaveBeenCalledOnce();
});

it('copies the secret, and states it', async () => {
  await render(<SecretDialog title="New key" secrets={secrets} onStored={() => {}} />);
  await person().click(screen.getByRole('button', { name: 'Copy the key' }));
  await screen.findByRole('button', { name: 'Copied' });
  expect(await navigator.clipboard.readText()).toBe('pr_secret');
});
