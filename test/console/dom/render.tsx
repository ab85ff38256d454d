import { screen, waitFor, within } from '@testing-library/dom';
import { type UserEvent, userEvent } from '@testing-library/user-event';
import { type ComponentChild, render as renderInto } from 'preact';
import { act as actAndRender } from 'preact/test-utils';
import { type Navigation, NavigationProvider, useBrowserLocation } from '../../../src/console/routing.ts';
import { currentMember, MemberProvider, type SessionPerson } from '../../../src/console/session.ts';
import { loadTexts, TextsProvider } from '../../../src/console/texts.ts';

export { screen, waitFor, within };

/** Makes a change, and waits until it and its effects are rendered. */
export async function act(change: () => unknown): Promise<void> {
  await actAndRender(async () => {
    await change();
  });
}

const texts = await loadTexts('en');
await texts.addPages();

const roots: Element[] = [];

/** Renders into the document; the returned function replaces what was rendered. Each test begins with an empty document. */
export async function render(content: ComponentChild): Promise<(next: ComponentChild) => Promise<void>> {
  const root = document.createElement('div');
  document.body.append(root);
  roots.push(root);
  const replace = (next: ComponentChild) =>
    act(() => renderInto(<TextsProvider value={texts}>{next}</TextsProvider>, root));
  await replace(content);
  return replace;
}

/** Removes what tests have rendered, with its effects. */
export async function removeRendered(): Promise<void> {
  for (const root of roots.splice(0)) {
    await act(() => renderInto(null, root));
    root.remove();
  }
}

/** A person with a keyboard and a pointer, who takes no time: the clock may be held. */
export function person(): UserEvent {
  return userEvent.setup({ delay: null });
}

/** A person with one account, whose role may read and send messages. */
export const SIGNED_IN: SessionPerson = {
  id: 'person-1',
  email: 'ada@example.com',
  name: 'Ada',
  operator: false,
  language: 'en',
  hasPassword: true,
  hasTotp: true,
  passkeys: 0,
  shortcuts: true,
  memberships: [{ accountId: 'account-1', accountName: 'Shop', role: 'developer' }],
  roles: { owner: ['messages', 'people'], developer: ['messages'] },
  operations: { listMessages: 'messages' },
  apiUrl: 'http://localhost:3000',
  session: {
    id: 's',
    method: 'password',
    authenticatedAt: '2026-11-28T13:50:00.000Z',
    lacksCredential: false,
  },
};

/** The content within a page of the console: with a person and with the navigation of the browser. */
export function InConsole({
  children,
  onNavigation,
}: {
  children: ComponentChild;
  onNavigation?: (navigation: Navigation) => void;
}) {
  const navigation = useBrowserLocation();
  onNavigation?.(navigation);
  return (
    <NavigationProvider value={navigation}>
      <MemberProvider value={currentMember(SIGNED_IN, 'account-1')}>{children}</MemberProvider>
    </NavigationProvider>
  );
}
