import type { IncomingHttpHeaders } from 'node:http';

/**
 * The cookie of a session. `__Host-` binds it to the host and to HTTPS (RFC 6265bis §4.1.3.2); a console on this machine
 * without HTTPS cannot use the prefix.
 */
export interface SessionCookie {
  /** The token in the request; null: none. */
  read(headers: IncomingHttpHeaders): string | null;
  /** The value of Set-Cookie that stores the token until the browser is closed. */
  write(token: string): string;
  /** The value of Set-Cookie that deletes it. */
  clear(): string;
}

/** Characters of a Cookie field that are read. */
const MAX_COOKIES = 8192;

/** `url`: `console.url`. */
export function sessionCookie(url: string): SessionCookie {
  const isSecure = url.startsWith('https:');
  const name = isSecure ? '__Host-postrider_session' : 'postrider_session';
  const attributes = `Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
  return {
    read: ({ cookie = '' }) => {
      const pairs = cookie.slice(0, MAX_COOKIES).split(';');
      const pair = pairs.map((text) => text.trim()).find((text) => text.startsWith(`${name}=`));
      return pair === undefined ? null : pair.slice(name.length + 1);
    },
    write: (token) => `${name}=${token}; ${attributes}`,
    clear: () => `${name}=; Max-Age=0; ${attributes}`,
  };
}
