import { createContext } from 'preact';
import { useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { addressOf } from './operations.ts';

/** The state of the application is its address: the page, its filters and the account. */
export interface PageAddress {
  /** Segments below /console/. */
  segments: string[];
  query: Readonly<Record<string, string>>;
}

export interface Navigation {
  location: PageAddress;
  /** The address of a page, with the current account unless `query` names another one. */
  href(path: string, query?: Readonly<Record<string, string | undefined>>): string;
  /** `discard`: without the question about unsaved changes (see `useUnsavedWarning`). */
  go(address: string, options?: { replace?: boolean; discard?: boolean }): void;
}

const BASE = '/console/';

const NavigationContext = createContext<Navigation | null>(null);
export const NavigationProvider = NavigationContext.Provider;

/** The navigation of the application. */
export function useNavigation(): Navigation {
  const navigation = useContext(NavigationContext);
  if (navigation === null) throw new Error('there is no NavigationProvider');
  return navigation;
}

function read(): PageAddress {
  const { pathname, search } = window.location;
  return {
    segments: pathname.slice(BASE.length).split('/').filter(Boolean).map(decoded),
    query: Object.fromEntries(new URLSearchParams(search)),
  };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    // Not encoded text: no page has this name.
    return segment;
  }
}

/** The question before the page is left; null if it has no unsaved changes. */
let unsavedQuestion: string | null = null;

/** While `isUnsaved`, the browser asks before the page or the account is left, and the console asks `question`. */
export function useUnsavedWarning(isUnsaved: boolean, question: string): void {
  useEffect(() => {
    if (!isUnsaved) return undefined;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', ask);
    unsavedQuestion = question;
    return () => {
      window.removeEventListener('beforeunload', ask);
      unsavedQuestion = null;
    };
  }, [isUnsaved, question]);
}

/** Whether something on the page is not saved or not finished. */
export function hasUnsavedWork(): boolean {
  return unsavedQuestion !== null;
}

/** Whether the page at `from` may be left for `to`. Other parameters than the account do not leave a page. */
function mayLeave(from: string, to: string): boolean {
  if (unsavedQuestion === null) return true;
  const [old, next] = [new URL(from), new URL(to, from)];
  const stays =
    old.pathname === next.pathname && old.searchParams.get('account') === next.searchParams.get('account');
  return stays || window.confirm(unsavedQuestion);
}

/** Follows the address, and handles clicks on links to other pages of the application. */
export function useBrowserLocation(): Navigation {
  const [location, setLocation] = useState(read);
  /** The address of the page that is shown. */
  const shown = useRef(window.location.href);
  useEffect(() => {
    const update = () => {
      shown.current = window.location.href;
      setLocation(read());
    };
    const back = () => {
      if (mayLeave(shown.current, window.location.href)) update();
      else window.history.pushState(null, '', shown.current);
    };
    const click = (event: MouseEvent) => {
      const isPlain =
        event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
      const link = event.target instanceof Element ? event.target.closest('a') : null;
      if (!isPlain || link === null || event.defaultPrevented || link.target !== '' || link.download !== '')
        return;
      const isPage = link.origin === window.location.origin && link.pathname.startsWith(BASE);
      if (!isPage || link.hash !== '') return;
      event.preventDefault();
      if (!mayLeave(shown.current, link.href)) return;
      window.history.pushState(null, '', link.href);
      update();
      window.scrollTo(0, 0);
    };
    window.addEventListener('popstate', back);
    document.addEventListener('click', click);
    return () => {
      window.removeEventListener('popstate', back);
      document.removeEventListener('click', click);
    };
  }, []);

  return useMemo(
    () => ({
      location,
      href: (path, query = {}) => addressOf(BASE + path, { account: location.query['account'], ...query }),
      go: (address, { replace = false, discard = false } = {}) => {
        if (!discard && !mayLeave(shown.current, address)) return;
        if (replace) window.history.replaceState(null, '', address);
        else window.history.pushState(null, '', address);
        shown.current = window.location.href;
        setLocation(read());
      },
    }),
    [location],
  );
}
