/* The pages that were open in this tab: for the palette. The sign-out clears them with the storage of the site. */

interface RecentPage {
  title: string;
  address: string;
}

const KEY = 'postrider-recent-pages';
const MAX_RECENT = 6;

/** Notes that a page is open. */
export function noteRecentPage(page: RecentPage): void {
  const others = stored().filter(({ address }) => address !== page.address);
  sessionStorage.setItem(KEY, JSON.stringify([page, ...others].slice(0, MAX_RECENT)));
}

/** The pages that were open before this one, newest first. */
export function recentPages(): RecentPage[] {
  return stored().slice(1);
}

function stored(): RecentPage[] {
  const text = sessionStorage.getItem(KEY);
  if (text === null) return [];
  try {
    const pages: unknown = JSON.parse(text);
    return Array.isArray(pages) ? pages.filter(isPage) : [];
  } catch {
    // Not what this program stored.
    return [];
  }
}

function isPage(value: unknown): value is RecentPage {
  if (typeof value !== 'object' || value === null || !('title' in value) || !('address' in value))
    return false;
  // An address of another site would leave the console.
  return (
    typeof value.title === 'string' &&
    typeof value.address === 'string' &&
    value.address.startsWith('/console/')
  );
}
