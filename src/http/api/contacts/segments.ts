import * as z from 'zod';
import { presentContact } from '../../../audience/present.ts';
import { segmentFilter } from '../../../audience/segments/filter.ts';
import { type CountedSegment, type Segments, segmentFilterOf } from '../../../audience/segments/segments.ts';
import { iso } from '../../../core/clock.ts';
import { isRefusal } from '../../../core/refusal.ts';
import { mapResult, type Route, routesOf } from '../../route.ts';
import { definedFields, messageResult, resourceName } from '../fields.ts';
import { endOf, nameSearch, pageOf, pagesBySeq, paging } from '../paging.ts';
import { CONTACT_EXAMPLES, contact } from './contact-schemas.ts';

/* `/web-setup/segments`: saved filters over contacts. */

const route = routesOf({ tag: 'Segments', scope: 'setup', permissions: ['read', 'contacts'] });

const segment = z
  .object({
    segmentId: z.string(),
    name: z.string(),
    filter: segmentFilter,
    count: z
      .int()
      .nullable()
      .describe(
        'Contacts that match; in lists, the number may be a minute old. Null: they could not be counted in time, or the list was requested with `counts=false`.',
      ),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'Segment' });
const result = z.object({ segment }).meta({ id: 'SegmentResult' });
const name = resourceName.describe('Unique in the account.');

const FILTER_EXAMPLE = {
  all: [
    { field: 'customFields.plan', op: 'is' as const, value: 'gold' },
    { not: { opened: { withinDays: 30 } } },
  ],
};
const EXAMPLE: z.output<typeof segment> = {
  segmentId: 'segment_1769860800000_8r2t4y6u1i3o',
  name: 'Gold, not reading',
  filter: FILTER_EXAMPLE,
  count: 318,
  createdAt: CONTACT_EXAMPLES.time,
  updatedAt: CONTACT_EXAMPLES.time,
};
const one = { data: result, example: { segment: EXAMPLE } };

/** The segment as the API returns it. */
export function presentSegment({ segment: row, count }: CountedSegment): z.output<typeof segment> {
  return {
    segmentId: row.segment_id,
    name: row.name,
    filter: segmentFilterOf(row),
    count,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  };
}

/** Contacts that a preview shows. */
const PREVIEW_CONTACTS = 10;

export function segmentRoutes({ segments }: { segments: Segments }): Route[] {
  const update = (method: 'PUT' | 'PATCH', operationId: string) =>
    route(`${method} /web-setup/segments/{segmentId}`, {
      operationId,
      summary: 'Update a segment',
      description:
        'Replaces the fields that are given. A campaign that is being sent continues with the new filter.',
      body: z
        .object({ name: name.optional(), filter: segmentFilter.optional() })
        .meta({ id: 'SegmentPatch' }),
      example: { name: 'Gold, sleeping' },
      response: { description: 'The updated segment.', ...one },
      refusals: ['SEGMENT_NOT_FOUND'],
      narrowBy: [],
      handle: async ({ caller, params, body }) =>
        mapResult(await segments.update(caller.accountId, params.segmentId, definedFields(body)), (row) => ({
          segment: presentSegment(row),
        })),
    });
  return [
    route('GET /web-setup/segments', {
      operationId: 'listSegments',
      summary: 'List segments, newest first',
      query: z.object({
        search: nameSearch,
        counts: z.enum(['true', 'false']).default('true').describe('Whether the contacts are counted.'),
        ...paging,
      }),
      page: pagesBySeq('segments'),
      response: pageOf('segments', segment, EXAMPLE),
      narrowBy: ['limit'],
      handle: async ({ caller: { accountId }, query: { search, counts, limit }, after }) => {
        const filter = { accountId, beforeSeq: after, limit, search };
        const { rows, more } = await segments.list(filter, counts === 'true');
        return { segments: rows.map(presentSegment), ...endOf(rows, more ? rows.at(-1)?.segment.seq : null) };
      },
    }),
    route('POST /web-setup/segments', {
      operationId: 'createSegment',
      summary: 'Create a segment',
      body: z.object({ name, filter: segmentFilter }).meta({ id: 'SegmentInput' }),
      example: { name: EXAMPLE.name, filter: FILTER_EXAMPLE },
      response: { status: 201, description: 'The created segment.', ...one },
      refusals: ['LIMIT_REACHED'],
      narrowBy: [],
      handle: async ({ caller, body }) =>
        mapResult(await segments.create(caller.accountId, body), (row) => ({ segment: presentSegment(row) })),
    }),
    route('POST /web-setup/segments/preview', {
      operationId: 'previewSegment',
      summary: 'Count the contacts that match a filter',
      description: 'Nothing is stored.',
      stores: () => false,
      body: z.object({ filter: segmentFilter }).meta({ id: 'SegmentPreviewInput' }),
      example: { filter: FILTER_EXAMPLE },
      response: {
        description: `The number of contacts, and the newest ${PREVIEW_CONTACTS} of them.`,
        data: z.object({ count: z.int(), contacts: z.array(contact) }).meta({ id: 'SegmentPreview' }),
        example: { count: EXAMPLE.count, contacts: [CONTACT_EXAMPLES.contact] },
      },
      narrowBy: [],
      handle: async ({ caller, body }) =>
        mapResult(
          await segments.preview(caller.accountId, body.filter, PREVIEW_CONTACTS),
          ({ count, newest }) => ({ count, contacts: newest.map(presentContact) }),
        ),
    }),
    route('GET /web-setup/segments/{segmentId}', {
      operationId: 'getSegment',
      summary: 'Get a segment with the number of its contacts',
      response: { description: 'The segment.', ...one },
      refusals: ['SEGMENT_NOT_FOUND'],
      narrowBy: [],
      handle: async ({ caller, params }) =>
        mapResult(await segments.get(caller.accountId, params.segmentId), (row) => ({
          segment: presentSegment(row),
        })),
    }),
    update('PUT', 'replaceSegmentFields'),
    update('PATCH', 'updateSegment'),
    route('DELETE /web-setup/segments/{segmentId}', {
      operationId: 'deleteSegment',
      summary: 'Delete a segment',
      description: 'Refused while a campaign uses it that is scheduled, paused or being sent.',
      response: {
        description: 'The segment was deleted. Its contacts remain.',
        data: messageResult,
        example: { message: 'The segment has been deleted.' },
      },
      refusals: ['SEGMENT_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params }) => {
        const removed = await segments.remove(caller.accountId, params.segmentId);
        if (isRefusal(removed)) return removed;
        return { message: 'The segment has been deleted.' };
      },
    }),
  ];
}
