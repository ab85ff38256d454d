import type { IncomingMessage } from 'node:http';
import type { Middleware } from 'koa';
import { refuse } from '../../core/refusal.ts';
import { respond } from '../front.ts';
import { refusalResponse } from '../responses.ts';
import type { RequestState } from '../router.ts';

/*
 * What protects the session in the browser: headers that restrict pages, and checks that a request comes from a page of
 * the console.
 */

/** Nothing from other origins, no inline code, in no frame. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "frame-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
].join('; ');

const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=()',
};

/** Sets the headers of all responses; a handler may replace them. */
export function pageHeaders(): Middleware {
  return (ctx, next) => {
    for (const [name, value] of Object.entries(PAGE_HEADERS)) ctx.res.setHeader(name, value);
    return next();
  };
}

/** The path of images of accounts within the console. */
export const IMAGE_PATH = '/console/images/';

/** The header that requests of the application have. Other origins cannot send it without a preflight request. */
export const CONSOLE_HEADER = 'x-postrider-console';

/**
 * Refuses requests that pages of other origins caused: changes without CONSOLE_HEADER, and requests whose Sec-Fetch-Site
 * or Origin names another origin; except for images, which need no session, and which frames of previews show: they are
 * isolated, and have no origin. `url`: the origin of the console.
 */
export function requestOrigin(url: () => string): Middleware {
  return (ctx, next) => {
    const { requestId }: RequestState = ctx.state;
    if (isImage(ctx.req)) return next();
    const message = faultOf(ctx.req, url());
    if (message === null) return next();
    respond(ctx, refusalResponse(refuse('INSUFFICIENT_SCOPE', message), requestId));
    return undefined;
  };
}

function isImage({ method, url = '', headers }: IncomingMessage): boolean {
  const isRead = method === 'GET' || method === 'HEAD';
  return isRead && url.startsWith(IMAGE_PATH) && headers['sec-fetch-dest'] === 'image';
}

function faultOf({ method, headers }: IncomingMessage, url: string): string | null {
  const site = headers['sec-fetch-site'];
  const isRead = method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
  // `none`: the user entered the address.
  if (site !== undefined && site !== 'same-origin' && !(isRead && site === 'none'))
    return 'Requests of pages of other sites are refused';
  const { origin, host } = headers;
  if (origin !== undefined && origin !== url && !isOriginOf(origin, host))
    return 'Requests of pages of other origins are refused';
  if (isRead) return null;
  return headers[CONSOLE_HEADER] === '1'
    ? null
    : 'X-Postrider-Console: 1 is required in requests that change something';
}

/** Whether the origin has the name in Host: a console without `console.url` has the names localhost and 127.0.0.1. */
function isOriginOf(origin: string, host: string | undefined): boolean {
  return URL.canParse(origin) && host !== undefined && new URL(origin).host === host.toLowerCase();
}

/** Paths that are answered as operations also when the browser navigates to them: downloads and redirects. */
const NAVIGABLE = /^(?:api|oidc|audit\/export|exports|previews)(?:\/|$)/;

/** Whether the browser opens a page: pages of the application can have the path of an operation. `path`: below `/console/`. */
export function isNavigation({ headers }: IncomingMessage, path: string): boolean {
  if (NAVIGABLE.test(path)) return false;
  const destination = headers['sec-fetch-dest'];
  return destination === undefined
    ? (headers.accept ?? '').includes('text/html')
    : destination === 'document';
}
