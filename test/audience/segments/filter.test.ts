import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { MAX_CONDITIONS, MAX_FILTER_DEPTH, segmentFilter } from '../../../src/audience/segments/filter.ts';
import { isRefusal } from '../../../src/core/refusal.ts';
import { parseInput } from '../../../src/http/validation/parse.ts';

const body = z.object({ filter: segmentFilter });

/** The message of the refusal of a filter, with the path of the field; null: it is valid. */
function faultOf(filter: unknown): string | null {
  const parsed = parseInput(body, { filter }, 'body');
  return isRefusal(parsed) ? parsed.message : null;
}

const nested = (depth: number): object =>
  depth === 1 ? { field: 'email', op: 'exists' } : { not: nested(depth - 1) };

describe('the filter of a segment', () => {
  it.each([
    { field: 'email', op: 'contains', value: '@example.com' },
    { field: 'customFields.plan', op: 'is', value: 'pro' },
    { field: 'customFields.age', op: 'greaterThan', value: 17 },
    { field: 'customFields.a.b c', op: 'exists' },
    { field: 'createdAt', op: 'after', value: '2026-01-31' },
    { field: 'globalStatus', op: 'isNot', value: 'bounced' },
    { group: 'sgroup_1', active: false },
    { opened: { withinDays: 30 } },
    { clicked: { notWithinDays: 30 } },
    { joined: { withinDays: 7, group: 'sgroup_1' } },
    { all: [{ received: { campaignId: 'campaign_1' } }, { not: { opened: { campaignId: 'campaign_1' } } }] },
    nested(MAX_FILTER_DEPTH),
  ])('accepts %j', (filter) => {
    expect(faultOf(filter)).toBeNull();
  });

  it.each([
    [{}, 'filter: must have one of all, any, not'],
    [{ all: [] }, 'filter.all: must not be empty'],
    [
      { all: [{ group: 'sgroup_1' }, { field: 'email', op: 'like', value: 'x' }] },
      'filter.all[1].op: must be one of "is"',
    ],
    [{ not: { field: 'emial', op: 'exists' } }, 'filter.not.field: is not a field of contacts: "emial"'],
    [{ field: 'customFields.', op: 'exists' }, 'filter.field: is not a field'],
    [{ field: 'email' }, 'filter.op: is required'],
    [{ field: 'email', op: 'is' }, 'filter.value: is required'],
    [{ field: 'email', op: 'lessThan', value: 1 }, 'filter.op: must be one of is, isNot, contains'],
    [{ field: 'customFields.age', op: 'lessThan', value: '18' }, 'filter.value: must be a number'],
    [{ field: 'createdAt', op: 'before', value: 'yesterday' }, 'filter.value: must be a date such as'],
    [{ field: 'globalStatus', op: 'is', value: 'dead' }, 'filter.value: must be one of active'],
    [{ op: 'is', value: 1, group: 'x' }, 'filter.op: requires a field'],
    [{ field: 'email', op: 'exists', active: true }, 'filter.active: requires a group'],
    [{ group: 'x', joined: { withinDays: 1 } }, 'filter.joined: cannot be combined with group'],
    [
      { any: [{ opened: { withinDays: 1, notWithinDays: 2 } }] },
      'filter.any[0].opened.notWithinDays: cannot be combined with withinDays',
    ],
    [{ opened: { withinDays: 0 } }, 'filter.opened.withinDays: must be at least 1'],
    [{ opened: {} }, 'filter.opened: must have one of withinDays'],
    [{ any: [{ fiel: 'email' }] }, 'filter.any[0].fiel: is not a field'],
    [{ group: 'x', actve: true }, 'filter.actve: is not a field'],
    [nested(MAX_FILTER_DEPTH + 1), `filter: must be nested at most ${MAX_FILTER_DEPTH} levels`],
    [
      { all: [0, 1].map(() => ({ any: Array.from({ length: MAX_CONDITIONS }, () => ({ group: 'x' })) })) },
      `filter: must have at most ${MAX_CONDITIONS} conditions`,
    ],
    [{ all: Array.from({ length: MAX_CONDITIONS + 1 }, () => ({ group: 'x' })) }, 'filter.all: must have'],
    ['x', 'filter: must be an object'],
  ])('refuses %j', (filter, message) => {
    expect(faultOf(filter)).toContain(message);
  });
});
