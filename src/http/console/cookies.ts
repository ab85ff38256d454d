import type { IncomingHttpHeaders } from 'node:http';
import { OIDC_STATE_MS } from '../../people/oidc.ts';

/** A cookie of the console. */
export interface ConsoleCookie {
  /** The value in the request; null: none. */
  read(headers: IncomingHttpHeaders): string | null;
  /** The value of Set-Cookie that stores it. */
  write(value: string): string;
  /** The value of Set-Cookie that deletes it. */
  clear(): string;
}

interface CookieOptions {
  name: string;
  sameSite: 'Strict' | 'Lax';
  /** Where the cookie is sent without HTTPS. Default: to all pages, as always with the prefix. */
  path?: string;
  /** Default: until the browser is closed. */
  maxAgeSeconds?: number;
}

/** Characters of a Cookie field that are read. */
const MAX_COOKIES = 8192;

/** The token of a session. `url`: `console.url`. */
export function sessionCookie(url: string): ConsoleCookie {
  return consoleCookie(url, { name: 'postrider_session', sameSite: 'Strict' });
}

/**
 * The sealed state of a sign-in at the OpenID Connect provider, from which the browser returns. Without the prefix, a page
 * of another host in the domain could set the cookie of a sign-in that its author began, and sign the person in as someone
 * else. `url`: `console.url`.
 */
export function oidcCookie(url: string): ConsoleCookie {
  return consoleCookie(url, {
    name: 'postrider_oidc',
    sameSite: 'Lax',
    path: '/console/oidc',
    maxAgeSeconds: OIDC_STATE_MS / 1000,
  });
}

/**
 * `__Host-` binds a cookie to the host and to HTTPS (RFC 6265bis §4.1.3.2); a console on this machine without HTTPS cannot
 * use the prefix.
 */
function consoleCookie(url: string, options: CookieOptions): ConsoleCookie {
  const { sameSite, path = '/', maxAgeSeconds } = options;
  const isSecure = url.startsWith('https:');
  const name = isSecure ? `__Host-${options.name}` : options.name;
  const attributes = `Path=${isSecure ? '/' : path}; HttpOnly; SameSite=${sameSite}${isSecure ? '; Secure' : ''}`;
  const lifetime = maxAgeSeconds === undefined ? '' : `Max-Age=${maxAgeSeconds}; `;
  return {
    read: ({ cookie = '' }) => {
      const pairs = cookie.slice(0, MAX_COOKIES).split(';');
      const pair = pairs.map((text) => text.trim()).find((text) => text.startsWith(`${name}=`));
      return pair === undefined ? null : pair.slice(name.length + 1);
    },
    write: (value) => `${name}=${value}; ${lifetime}${attributes}`,
    clear: () => `${name}=; Max-Age=0; ${attributes}`,
  };
}
