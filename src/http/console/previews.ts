import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import type { Caller } from '../../accounts/authenticate.ts';
import { MINUTE } from '../../core/clock.ts';
import type { Random } from '../../core/random.ts';
import { type Refusal, refuse } from '../../core/refusal.ts';
import { inSlices, type Work } from '../../core/slices.ts';
import { complianceVariables, findingMissingCompliance, missingInText } from '../../mail/compliance.ts';
import { personalize } from '../../mail/content.ts';
import { derivingText } from '../../mail/html/text-part.ts';
import { parsingTemplate, renderingTemplate, type TemplateKind } from '../../mail/template.ts';
import type { Tables } from '../../store/tables.ts';
import { complianceTexts } from '../../templates/compliance-templates.ts';
import type { ApiResponse } from '../route.ts';
import type { ConsoleAccess } from './access.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';

/**
 * `/console/previews`: content that is not saved yet, as a recipient would see it. The HTML is stored in memory for a few
 * minutes, for a frame with another policy: the policy of the page would apply to HTML that the page inserts itself.
 */
export interface TemplatePreview {
  /** Of the HTML: `/console/previews/{id}`. */
  id: string;
  subject: string;
  text: string;
  /** Variables without a value; their names are shown in their place. */
  missing: string[];
  /** Compliance variables without which the content cannot be sent. */
  required: string[];
  /** Text in braces that is not a variable, which is often a mistake. */
  leftovers: string[];
  /** Of the HTML. */
  bytes: number;
}

export interface PreviewDeps {
  access: ConsoleAccess;
  tables: Tables;
  random: Random;
}

interface StoredPreview {
  personId: string;
  html: string;
}

const MAX_CHARACTERS = 1024 * 1024;
const MAX_RENDERED = 2 * MAX_CHARACTERS;
const MAX_STORED = 16 * MAX_CHARACTERS;
const MAX_PREVIEWS = 2000;
const STORED_MS = 15 * MINUTE;
const MAX_BODY_BYTES = 4 * MAX_CHARACTERS;
const ID_BYTES = 16;

const content = z.string().max(MAX_CHARACTERS);
const input = z.strictObject({
  subject: z.string().max(1000).nullish(),
  html: content.nullish(),
  text: content.nullish(),
  /** Address of the sender and the recipient, in the footer. */
  from: z.string().max(320).nullish(),
  to: z.string().max(320).nullish(),
  /** Values of variables. */
  values: z.record(z.string().max(1000), z.unknown()).nullish(),
});
type PreviewInput = z.output<typeof input>;

/** The operations: to create a preview, and to read its HTML, which `messageContentHandler` turns into a page. */
export function previewRoutes({ access, tables, random }: PreviewDeps): {
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
      body: input,
      handle: async ({ caller, body }): Promise<ApiResponse | Refusal> => {
        const { html, ...preview } = await inSlices(
          rendering(tables, caller.accountId, body),
          caller.accountId,
        );
        const id = random.bytes(ID_BYTES).toString('base64url');
        stored.set(id, { personId: personOf(caller), html });
        const data: TemplatePreview = { id, ...preview };
        return { status: 200, data };
      },
    }),
    content: consoleRoute({
      method: 'GET',
      path: '/previews/{previewId}',
      operationId: 'getPreview',
      access: 'person',
      params: z.object({ previewId: z.string().max(100) }),
      handle: ({ caller, params }) => {
        const found = stored.get(params.previewId);
        return found === undefined || found.personId !== personOf(caller)
          ? refuse('NOT_FOUND', 'This preview has expired: change the content to create a new one')
          : { status: 200, data: { html: found.html } };
      },
    }),
  };
}

type RenderedPreview = Omit<TemplatePreview, 'id'> & { html: string };

/** Inserts values, the account's footer, and the names of variables that have no value. */
function* rendering(tables: Tables, accountId: string, body: PreviewInput): Work<RenderedPreview> {
  const from = body.from ?? 'sender@example.com';
  const account = tables.accounts.get(accountId);
  const service = complianceVariables({
    account: {
      companyName: account?.company_name ?? null,
      // Sound: the store contains what the schema of addresses accepted.
      companyAddress: JSON.parse(account?.company_address ?? 'null'),
    },
    from,
    templates: complianceTexts(tables, accountId, {
      fromDomain: from.slice(from.lastIndexOf('@') + 1).toLowerCase(),
      groupId: null,
    }),
  });
  const copy = {
    recipient: body.to ?? 'recipient@example.com',
    unsubscribeUrl: 'https://example.com/unsubscribe',
    reportAbuseUrl: 'https://example.com/report-abuse',
  };
  const missing = new Set<string>();
  const leftovers = new Set<string>();

  function* part(kind: TemplateKind, source: string): Work<string> {
    const template = yield* parsingTemplate(source);
    for (const leftover of template.leftovers) leftovers.add(leftover);
    const own = new Map(Object.entries(kind === 'html' ? service.html : service.text));
    // Each turn names at most MAX_PROBLEMS variables; the next one shows their names.
    for (let turn = 0; turn < MAX_TURNS; turn++) {
      const values = Object.fromEntries(own);
      const rendered = yield* renderingTemplate(template, kind, body.values ?? {}, values, {
        limit: MAX_RENDERED,
      });
      if (typeof rendered === 'string') return personalize(rendered, copy, kind === 'html' ? 'html' : 'text');
      for (const { name, reason } of rendered) {
        if (reason === 'too-long') return '';
        missing.add(name);
        own.set(name, `{{${name}}}`);
      }
    }
    return '';
  }

  const source = body.html ?? '';
  const html = yield* part('html', source);
  const subject = yield* part('subject', body.subject ?? '');
  const text =
    body.text === null || body.text === undefined
      ? yield* derivingText(html)
      : yield* part('text', body.text);
  const template = yield* parsingTemplate(source === '' ? (body.text ?? '') : source);
  const required =
    source === '' ? missingInText(template) : yield* findingMissingCompliance(source, template);
  return {
    html,
    subject,
    text,
    missing: [...missing].filter((name) => !required.some((other) => other === name)),
    required,
    leftovers: [...leftovers],
    bytes: Buffer.byteLength(html),
  };
}

/** Enough for a thousand variables without a value. */
const MAX_TURNS = 11;
