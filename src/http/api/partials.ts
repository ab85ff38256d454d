import * as z from 'zod';
import { isRefusal } from '../../core/refusal.ts';
import { PARTIAL_NAME } from '../../mail/liquid.ts';
import type { PartialRow } from '../../store/partials.ts';
import { MAX_PARTIAL_HTML, MAX_PARTIALS, type Partials, presentPartial } from '../../templates/partials.ts';
import { mapResult, type Route, routesOf } from '../route.ts';
import { definedFields, lines, messageResult } from './fields.ts';
import { nameSearch, pageOf, pagesBySeq, pagingWide, seqEnd } from './paging.ts';

/* `/web-setup/partials`: html that templates in Liquid share. */

const route = routesOf({ tag: 'Templates', scope: 'setup', permissions: ['read', 'prepare'] });

const name = z
  .string()
  .regex(PARTIAL_NAME, 'must have 1 to 100 letters, digits, "-" and "_"')
  .describe('What `{% render "name" %}`, `include` and `layout` refer to. Unique in the account.');
const html = lines().min(1).max(MAX_PARTIAL_HTML).describe('In Liquid.');

/** The body that creates a partial. */
export const partialInput = z.object({ name, html }).meta({ id: 'PartialInput' });

const head = {
  partialId: z.string(),
  name: z.string(),
  bytes: z.int().describe('Size of the html.'),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
};
const listed = z.object(head).meta({ id: 'PartialHead' });
const partial = z.object({ ...head, html: z.string() }).meta({ id: 'Partial' });

const INPUT_EXAMPLE = { name: 'header', html: '<p>{{ shop | default: "Example Shop" }}</p>' };
const HEAD_EXAMPLE = {
  partialId: 'partial_1769860800000_5n7b9v1c3x2z',
  name: INPUT_EXAMPLE.name,
  bytes: INPUT_EXAMPLE.html.length,
  createdAt: '2026-01-31T12:00:00.000Z',
  updatedAt: '2026-01-31T12:00:00.000Z',
};
const one = {
  data: z.object({ partial }).meta({ id: 'PartialResult' }),
  example: { partial: { ...HEAD_EXAMPLE, html: INPUT_EXAMPLE.html } },
};

export function partialRoutes({ partials }: { partials: Partials }): Route[] {
  return [
    route('GET /web-setup/partials', {
      operationId: 'listPartials',
      summary: 'List partials, newest first',
      description: 'Without their html.',
      query: z.object({ search: nameSearch, ...pagingWide }),
      page: pagesBySeq('partials'),
      response: pageOf('partials', listed, HEAD_EXAMPLE),
      narrowBy: ['limit'],
      handle: async ({ caller: { accountId }, query: { search, limit }, after }) => {
        const page = await partials.list({ accountId, beforeSeq: after, limit, search });
        return { partials: page.rows.map(presentPartial), ...seqEnd(page) };
      },
    }),
    route('POST /web-setup/partials', {
      operationId: 'createPartial',
      summary: 'Create a partial',
      description: `Html that content in Liquid inserts by its name: \`{% render "header" %}\`. An account has at most ${MAX_PARTIALS}.`,
      body: partialInput,
      example: INPUT_EXAMPLE,
      response: { status: 201, description: 'The created partial.', ...one },
      refusals: ['LIMIT_REACHED', 'TEMPLATE_SYNTAX'],
      handle: async ({ caller, body }) =>
        mapResult(await partials.create(caller.accountId, body), presentOne),
    }),
    route('GET /web-setup/partials/{partialId}', {
      operationId: 'getPartial',
      summary: 'Get a partial',
      response: { description: 'The partial.', ...one },
      refusals: ['PARTIAL_NOT_FOUND'],
      handle: ({ caller, params }) => mapResult(partials.get(caller.accountId, params.partialId), presentOne),
    }),
    route('PUT /web-setup/partials/{partialId}', {
      operationId: 'updatePartial',
      summary: 'Update a partial',
      description:
        'Replaces the fields that are given. Templates have the new html from then on; mail that is accepted, and campaigns that are scheduled or being sent, do not change. The name cannot change while something uses it.',
      body: partialInput.partial().meta({ id: 'PartialPatch' }),
      example: { html: '<p>Example Shop</p>' },
      response: { description: 'The updated partial.', ...one },
      refusals: ['PARTIAL_NOT_FOUND', 'PARTIAL_IN_USE', 'TEMPLATE_SYNTAX'],
      narrowBy: [],
      handle: async ({ caller, params, body }) =>
        mapResult(await partials.update(caller.accountId, params.partialId, definedFields(body)), presentOne),
    }),
    route('DELETE /web-setup/partials/{partialId}', {
      operationId: 'deletePartial',
      summary: 'Delete a partial',
      description: 'Refused while a template in Liquid, a sequence or another partial uses it.',
      response: {
        description: 'The partial was deleted.',
        data: messageResult,
        example: { message: 'The partial has been deleted.' },
      },
      refusals: ['PARTIAL_NOT_FOUND', 'PARTIAL_IN_USE'],
      narrowBy: [],
      handle: async ({ caller, params }) => {
        const removed = await partials.remove(caller.accountId, params.partialId);
        return isRefusal(removed) ? removed : { message: 'The partial has been deleted.' };
      },
    }),
  ];
}

function presentOne(row: PartialRow) {
  return { partial: { ...presentPartial(row), html: row.html } };
}
