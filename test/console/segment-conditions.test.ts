import { describe, expect, it } from 'vitest';
import {
  filterOf,
  groupOf,
  isComplete,
  newCondition,
  newGroup,
  type SegmentFilter,
} from '../../src/console/pages/segments/conditions.ts';

describe('the form of a segment', () => {
  it.each<SegmentFilter>([
    { all: [{ field: 'email', op: 'contains', value: '@example.net' }] },
    { any: [{ field: 'globalStatus', op: 'is', value: 'active' }, { opened: { notWithinDays: 30 } }] },
    {
      all: [
        { group: 'sgroup_1', active: true },
        { group: 'sgroup_2', active: false },
      ],
    },
    { all: [{ not: { group: 'sgroup_1' } }, { joined: { withinDays: 7 } }] },
    { not: { any: [{ field: 'customFields.plan', op: 'is', value: 'gold' }] } },
    { all: [{ field: 'customFields.age', op: 'greaterThan', value: 17.5 }] },
    {
      all: [
        { field: 'customFields.vip', op: 'is', value: true },
        { field: 'phone', op: 'exists' },
      ],
    },
    {
      all: [
        { not: { field: 'phone', op: 'exists' } },
        { field: 'createdAt', op: 'after', value: '2026-01-01' },
      ],
    },
    { all: [{ any: [{ not: { all: [{ field: 'email', op: 'is', value: 'a' }] } }] }] },
    // No row shows these.
    { all: [{ opened: { campaignId: 'campaign_1' } }, { field: 'customFields.n', op: 'is', value: 5 }] },
    {
      all: [
        { joined: { withinDays: 7, group: 'sgroup_1' } },
        { field: 'customFields.v', op: 'isNot', value: true },
      ],
    },
  ])('keeps the filter %j', (filter) => {
    const group = groupOf(filter);
    expect(isComplete(group)).toBe(true);
    expect(filterOf(group)).toEqual(filter);
  });

  it.each<[SegmentFilter, SegmentFilter]>([
    [{ group: 'sgroup_1' }, { all: [{ group: 'sgroup_1', active: true }] }],
    [{ not: { opened: { withinDays: 30 } } }, { all: [{ opened: { notWithinDays: 30 } }] }],
    [{ field: 'phone', op: 'exists', value: false }, { all: [{ not: { field: 'phone', op: 'exists' } }] }],
    [
      { not: { not: { field: 'email', op: 'is', value: 'a' } } },
      { not: { all: [{ not: { all: [{ field: 'email', op: 'is', value: 'a' }] } }] } },
    ],
  ])('writes %j in the same sense', (filter, expected) => {
    expect(filterOf(groupOf(filter))).toEqual(expected);
  });

  it('is complete when each row has what it asks for', () => {
    expect(isComplete(newGroup())).toBe(false);
    expect(isComplete(newGroup([]))).toBe(false);
    expect(isComplete(newCondition('opened'))).toBe(true);
    expect(isComplete({ ...newCondition('customField'), value: 'x' })).toBe(false);
    expect(isComplete({ ...newCondition('email'), op: 'absent' })).toBe(true);
    expect(isComplete(newGroup([newCondition('opened'), newGroup()]))).toBe(false);
  });
});
