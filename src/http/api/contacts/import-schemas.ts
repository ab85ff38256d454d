import * as z from 'zod';

/** The result of an import, also of one that is in progress. */
export const countFields = {
  rows: z.int(),
  created: z.int(),
  updated: z.int(),
  unchanged: z.int().describe('Existing contacts without a change.'),
  rejected: z.int(),
  subscribed: z.int().describe('New members of the group.'),
  optedOut: z.int().describe('Members who left the group before: they stay inactive.'),
};

export const rejectedRow = z
  .object({ line: z.int().describe('Starts at 1.'), reason: z.string() })
  .meta({ id: 'RejectedRow' });
