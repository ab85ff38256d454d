import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import type { Caller } from '../../accounts/authenticate.ts';
import { MINUTE } from '../../core/clock.ts';
import type { Random } from '../../core/random.ts';
import { type Refusal, refuse } from '../../core/refusal.ts';
import type { ApiResponse } from '../route.ts';
import type { ConsoleAccess } from './access.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';

/**
 * `/console/previews`: the HTML of a preview (`previewTemplate` of the API) as a document for a frame with another policy:
 * the policy of the page would apply to HTML that the page inserts itself. It is kept in memory for a few minutes, for the
 * person who sent it.
 */
export interface PreviewDeps {
  access: ConsoleAccess;
  random: Random;
}

interface StoredPreview {
  personId: string;
  html: string;
}

const MAX_CHARACTERS = 2 * 1024 * 1024;
const MAX_STORED = 16 * 1024 * 1024;
const MAX_PREVIEWS = 2000;
const STORED_MS = 15 * MINUTE;
const MAX_BODY_BYTES = 4 * MAX_CHARACTERS;
const ID_BYTES = 16;

/** The operations: to store the HTML, and to read it, which `messageContentHandler` turns into a page. */
export function previewRoutes({ access, random }: PreviewDeps): {
  create: ConsoleRoute;
  content: ConsoleRoute;
} {
  const stored = new LRUCache<string, StoredPreview>({
    max: MAX_PREVIEWS,
    maxSize: MAX_STORED,
    sizeCalculation: ({ html }) => html.length + 1,
    ttl: STORED_MS,
  });
  const personOf = (caller: Caller) => access.sessionOf(caller).person.id;
  return {
    create: consoleRoute({
      method: 'POST',
      path: '/previews',
      operationId: 'createPreview',
      access: 'read',
      ownAudit: true,
      limit: MAX_BODY_BYTES,
      body: z.strictObject({ html: z.string().max(MAX_CHARACTERS) }),
      handle: ({ caller, body }): ApiResponse => {
        const id = random.bytes(ID_BYTES).toString('base64url');
        stored.set(id, { personId: personOf(caller), html: body.html });
        return { status: 200, data: { id } };
      },
    }),
    content: consoleRoute({
      method: 'GET',
      path: '/previews/{previewId}',
      operationId: 'getPreview',
      access: 'person',
      params: z.object({ previewId: z.string().max(100) }),
      handle: ({ caller, params }): ApiResponse | Refusal => {
        const found = stored.get(params.previewId);
        return found === undefined || found.personId !== personOf(caller)
          ? refuse('NOT_FOUND', 'This preview has expired: change the content to create a new one')
          : { status: 200, data: { html: found.html } };
      },
    }),
  };
}
