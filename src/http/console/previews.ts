import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import { MINUTE } from '../../core/clock.ts';
import { refuse } from '../../core/refusal.ts';
import { linkOfFileName, mediaFileName } from '../../media/files.ts';
import type { Context } from '../../store/context.ts';
import type { Tables } from '../../store/tables.ts';
import { MEDIA_ROUTE } from '../public/media.ts';
import { refusalResponse } from '../responses.ts';
import type { HttpResponse } from '../route.ts';
import type { Handler, RoutedRequest } from '../router.ts';
import { type ConsoleAccess, PAGE_TOKEN_HEADER } from './access.ts';
import { IMAGE_PATH } from './browser-checks.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';

/*
 * `/console/previews`: HTML of a message or of a preview as a document for a frame with another policy: the policy of the
 * page would apply to HTML that the page inserts itself. It is kept in memory for a few minutes, for the person who sent
 * it. Its address contains a random id, which only the page that sent it has: a frame sends the cookie, but no page token. The
 * addresses of the account's own images are replaced by those within the console; nothing else is loaded.
 */

interface StoredPreview {
  personId: string;
  pool: Pool;
  /** In whose share the preview is: the account, or the operator. */
  holder: string;
  html: string;
}

/** Previews of operators of the installation are stored apart from those of members. */
type Pool = keyof typeof MAX_OF_POOL;

interface PreviewStore {
  get(id: string): StoredPreview | undefined;
  set(id: string, preview: StoredPreview): void;
}

const MIB = 1024 * 1024;
const MAX_CHARACTERS = 2 * MIB;
/** Characters of the previews of all members, and of all operators. */
const MAX_OF_POOL = { members: 11 * MIB, operators: 5 * MIB };
const MAX_OF_HOLDER = 7 * MIB;
const MAX_OF_PERSON = 5 * MIB;
/** Added to the characters of each preview, to limit their number. */
const OVERHEAD = 8 * 1024;
const STORED_MS = 15 * MINUTE;
const MAX_BODY_BYTES = 4 * MAX_CHARACTERS;
const ID_BYTES = 16;

/** The operations: to store the HTML, and to read it, which `frameHandler` turns into a page. */
export function previewRoutes(
  { random, tables }: Pick<Context, 'random' | 'tables'>,
  { access }: { access: ConsoleAccess },
): {
  create: ConsoleRoute;
  content: ConsoleRoute;
} {
  const stored = createPreviewStore();
  return {
    create: consoleRoute('POST /console/previews', {
      operationId: 'createPreview',
      summary: 'Create a preview',
      access: 'read',
      ownAudit: true,
      limit: MAX_BODY_BYTES,
      body: z.strictObject({ html: z.string().max(MAX_CHARACTERS) }),
      handle: ({ caller, body }) => {
        const id = random.bytes(ID_BYTES).toString('base64url');
        const { id: personId, operator } = access.sessionOf(caller).person;
        stored.set(id, {
          personId,
          pool: operator ? 'operators' : 'members',
          holder: operator ? personId : caller.accountId,
          html: withOwnImages(tables, caller.accountId, body.html),
        });
        return { id };
      },
    }),
    content: consoleRoute('GET /console/previews/{previewId}', {
      operationId: 'getPreview',
      summary: 'Read a preview',
      access: 'person',
      secretInPath: true,
      params: { previewId: z.string().max(100) },
      handle: ({ caller, params, headers }) => {
        const found = stored.get(params.previewId);
        return found === undefined || found.personId !== access.sessionOf(caller).person.id
          ? refuse(
              // With the cookie alone, as every other operation.
              headers[PAGE_TOKEN_HEADER] === undefined ? 'UNAUTHENTICATED' : 'NOT_FOUND',
              'This preview has expired: change the content to create a new one',
            )
          : { html: found.html };
      },
    }),
  };
}

/**
 * Stores previews in shares: a new one replaces the oldest of the person, or of the account, when it exceeds their share.
 * When all together exceed the limit, it replaces the oldest of the account that stores the most.
 */
function createPreviewStore(): PreviewStore {
  const stored = new LRUCache<string, StoredPreview>({
    // Never reached.
    max: (MAX_OF_POOL.members + MAX_OF_POOL.operators) / OVERHEAD + 1,
    ttl: STORED_MS,
  });

  /** Deletes the oldest previews that match until they have at most `max` characters. */
  function limit(max: number, matches: (preview: StoredPreview) => boolean): void {
    const excess: string[] = [];
    let total = 0;
    // The newest first.
    for (const [id, preview] of stored.entries()) {
      if (!matches(preview)) continue;
      total += sizeOf(preview);
      if (total > max) excess.push(id);
    }
    for (const id of excess) stored.delete(id);
  }

  /** The holder with the most characters of some previews, and the sum of all. */
  function usageOf(matches: (preview: StoredPreview) => boolean): Usage {
    const sizes = new Map<string, number>();
    for (const preview of stored.values())
      if (matches(preview)) sizes.set(preview.holder, (sizes.get(preview.holder) ?? 0) + sizeOf(preview));
    const [largest = '', size = 0] = [...sizes].toSorted(([, one], [, other]) => one - other).at(-1) ?? [];
    return { largest, size, total: [...sizes.values()].reduce((sum, each) => sum + each, 0) };
  }

  return {
    get: (id) => stored.get(id),
    set: (id, preview) => {
      const { personId, pool, holder } = preview;
      stored.purgeStale();
      stored.set(id, preview);
      limit(MAX_OF_PERSON, (each) => each.personId === personId);
      limit(MAX_OF_HOLDER, (each) => each.pool === pool && each.holder === holder);
      const isOther = (each: StoredPreview) => each !== preview && each.pool === pool;
      const max = MAX_OF_POOL[pool] - sizeOf(preview);
      for (let usage = usageOf(isOther); usage.total > max; usage = usageOf(isOther)) {
        const { largest, size } = usage;
        limit(size - 1, (each) => isOther(each) && each.holder === largest);
      }
    },
  };
}

interface Usage {
  largest: string;
  size: number;
  total: number;
}

function sizeOf({ html }: StoredPreview): number {
  return html.length + OVERHEAD;
}

/**
 * The headers of a frame. The policy forbids scripts, forms and everything from other hosts, such as images that would count
 * as opens; `sandbox` isolates it from the origin of the console, of which it shows images of accounts only.
 */
function frameHeaders(origin: string): Record<string, string> {
  return {
    'Content-Security-Policy': `sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data: ${origin}${IMAGE_PATH}; base-uri 'none'; form-action 'none'; frame-ancestors 'self'`,
    'X-Frame-Options': 'SAMEORIGIN',
  };
}

const IMAGE_ADDRESS = new RegExp(
  `https?://[^\\s"'<>()/]{1,255}/${MEDIA_ROUTE}/([A-Za-z0-9]{43}\\.[a-z]{3,4})(?![A-Za-z0-9./])`,
  'g',
);
/** Different images of a preview; further ones are not shown. */
const MAX_IMAGES = 200;

/** HTML with the addresses within the console of the account's images: their links identify them, under any host. */
function withOwnImages({ media }: Tables, accountId: string, html: string): string {
  const isOwn = new Map<string, boolean>();
  return html.replaceAll(IMAGE_ADDRESS, (address, file: string) => {
    let own = isOwn.get(file);
    if (own === undefined) {
      if (isOwn.size >= MAX_IMAGES) return address;
      const found = media.byLink(linkOfFileName(file));
      own = found !== null && found.account_id === accountId && mediaFileName(found) === file;
      isOwn.set(file, own);
    }
    return own ? `${IMAGE_PATH}${file}` : address;
  });
}

/** `content`: the handler that reads the HTML. `url`: the origin of the console. */
export function frameHandler(content: Handler, url: () => string): Handler {
  return async (incoming) => {
    if (!isFrame(incoming))
      return refusalResponse(
        refuse('INSUFFICIENT_SCOPE', 'The content of a message is shown in its page only'),
        incoming.requestId,
      );
    const reply = await content(incoming);
    return reply === null || reply.status !== 200 ? reply : pageOf(reply, frameHeaders(url()));
  };
}

/** Browsers that do not send Sec-Fetch-Dest apply `frame-ancestors` and `sandbox`. */
function isFrame({ req: { headers } }: RoutedRequest): boolean {
  const destination = headers['sec-fetch-dest'];
  return destination === undefined || destination === 'iframe';
}

function pageOf({ body, headers }: HttpResponse, ofFrame: Record<string, string>): HttpResponse {
  // Sound: the body of a success of `getPreview`.
  const { data } = JSON.parse(String(body)) as { data: { html: string } };
  return {
    status: 200,
    contentType: 'text/html; charset=utf-8',
    body: data.html,
    headers: { ...headers, ...ofFrame },
  };
}
