import { beforeEach, expect, it, vi } from 'vitest';
import { type Navigation, useUnsavedWarning } from '../../src/console/routing.ts';
import { act, InConsole, render, screen } from './dom/render.tsx';

let navigation: Navigation;
const page = (content: preact.ComponentChild) => (
  <InConsole onNavigation={(next) => (navigation = next)}>{content}</InConsole>
);
const links = (
  <>
    <a href="/console/groups/a%2Fb?account=x">Groups</a>
    <a href="/console/contacts.csv" download>
      File
    </a>
    <a href="https://example.com/">Elsewhere</a>
  </>
);
/** Whether the application leaves a click to the browser. */
async function isLeft(name: string, keys: MouseEventInit = {}): Promise<boolean> {
  let left = false;
  const last = (event: Event) => {
    left = !event.defaultPrevented;
    event.preventDefault();
  };
  window.addEventListener('click', last, { once: true });
  const click = new MouseEvent('click', { bubbles: true, cancelable: true, ...keys });
  await act(() => screen.getByRole('link', { name }).dispatchEvent(click));
  return left;
}

beforeEach(() => window.history.replaceState(null, '', '/console/messages?account=x'));

it('opens its own pages without loading them', async () => {
  await render(page(links));
  expect(await isLeft('Groups')).toBe(false);
  expect(navigation.location).toEqual({ segments: ['groups', 'a/b'], query: { account: 'x' } });
});

it.each([
  ['a link to a file', 'File', {}],
  ['a link to another site', 'Elsewhere', {}],
  ['one that is opened in a new tab', 'Groups', { ctrlKey: true }],
])('leaves %s to the browser', async (_, name, keys) => {
  await render(page(links));
  expect(await isLeft(name, keys)).toBe(true);
  expect(navigation.location.segments).toEqual(['messages']);
});

it('keeps the account in the addresses of pages', async () => {
  await render(page(null));
  expect(navigation.href('contacts', { search: 'a&b', group: undefined })).toBe(
    '/console/contacts?account=x&search=a%26b',
  );
  expect(navigation.href('contacts', { account: 'y' })).toBe('/console/contacts?account=y');
});

it('does not fail for an address that is no encoded text', async () => {
  window.history.replaceState(null, '', '/console/groups/%E0%A4%A');
  await render(page(null));
  expect(navigation.location.segments).toEqual(['groups', '%E0%A4%A']);
});

it('asks before unsaved changes are left, but not before a filter changes', async () => {
  function Unsaved() {
    useUnsavedWarning(true, 'Leave?');
    return null;
  }
  const confirm = vi.fn(() => false);
  vi.stubGlobal('confirm', confirm);
  await render(page(<Unsaved />));
  await act(() => navigation.go('/console/messages?account=x&status=sent'));
  expect(confirm).not.toHaveBeenCalled();
  expect(navigation.location.query['status']).toBe('sent');
  await act(() => navigation.go('/console/groups?account=x'));
  expect(confirm).toHaveBeenCalledWith('Leave?');
  expect(navigation.location.segments).toEqual(['messages']);
  confirm.mockReturnValue(true);
  await act(() => navigation.go('/console/groups?account=x'));
  expect(navigation.location.segments).toEqual(['groups']);
});
