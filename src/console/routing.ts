import { createContext } from 'preact';
import { useContext, useEffect, useMemo, useState } from 'preact/hooks';
import { withQuery } from './api.ts';

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
  go(address: string, options?: { replace?: boolean }): void;
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

/** Follows the address, and handles clicks on links to other pages of the application. */
export function useBrowserLocation(): Navigation {
  const [location, setLocation] = useState(read);
  useEffect(() => {
    const update = () => setLocation(read());
    const click = (event: MouseEvent) => {
      const isPlain =
        event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
      const link = event.target instanceof Element ? event.target.closest('a') : null;
      if (!isPlain || link === null || event.defaultPrevented || link.target !== '' || link.download !== '')
        return;
      const isPage = link.origin === window.location.origin && link.pathname.startsWith(BASE);
      if (!isPage || link.hash !== '' || link.pathname.startsWith(`${BASE}oidc/`)) return;
      event.preventDefault();
      window.history.pushState(null, '', link.href);
      update();
      window.scrollTo(0, 0);
    };
    window.addEventListener('popstate', update);
    document.addEventListener('click', click);
    return () => {
      window.removeEventListener('popstate', update);
      document.removeEventListener('click', click);
    };
  }, []);

  return useMemo(
    () => ({
      location,
      href: (path, query = {}) => withQuery(BASE + path, { account: location.query['account'], ...query }),
      go: (address, { replace = false } = {}) => {
        if (replace) window.history.replaceState(null, '', address);
        else window.history.pushState(null, '', address);
        setLocation(read());
      },
    }),
    [location],
  );
}
