import * as z from 'zod';
import { DEFAULT_RULE, MAX_NOTICE_DAYS, type SunsetRules } from '../../../audience/hygiene/sunset.ts';
import {
  INACTIVE_MONTHS,
  inactiveFields,
  MAX_INACTIVE_MESSAGES,
  segmentFilter,
} from '../../../audience/segments/filter.ts';
import { type Route, routesOf } from '../../route.ts';
import { definedFields } from '../fields.ts';

/* `/web-setup/contacts/sunset`: ends marketing mail to contacts that do nothing with it. */

const route = routesOf({ tag: 'Contacts', scope: 'setup', permissions: ['read', 'contacts'] });

const input = z
  .object({
    enabled: z.boolean(),
    ...inactiveFields,
    noticeDays: z
      .int()
      .min(0)
      .max(MAX_NOTICE_DAYS)
      .describe(
        'Days between the finding, with the event `sunset` that triggers sequences, and the end of marketing mail.',
      ),
  })
  .meta({ id: 'SunsetInput' });

const sunset = z
  .object({
    ...input.shape,
    filter: segmentFilter,
    matching: z.int().describe('Contacts that match now.'),
    perDay: z
      .int()
      .describe('Contacts that the rule finds on a day at most, and whose mail it ends: 5 % of all.'),
    noticedToday: z.int(),
    endedToday: z.int(),
    ended: z.int().describe('All contacts whose marketing mail the rule has ended.'),
  })
  .meta({ id: 'Sunset' });

const EXAMPLE: z.output<typeof sunset> = {
  ...DEFAULT_RULE,
  filter: { inactive: { months: DEFAULT_RULE.months, messages: DEFAULT_RULE.messages } },
  matching: 812,
  perDay: 2411,
  noticedToday: 0,
  endedToday: 0,
  ended: 0,
};

const response = {
  description: 'The rule.',
  data: z.object({ sunset }).meta({ id: 'SunsetResult' }),
  example: { sunset: EXAMPLE },
};

export function sunsetRoutes({ sunset: rules }: { sunset: SunsetRules }): Route[] {
  return [
    route('GET /web-setup/contacts/sunset', {
      operationId: 'getSunset',
      summary: 'Get the sunset rule, and how many contacts it would find',
      query: z.object({
        months: z.coerce
          .number()
          .int()
          .min(INACTIVE_MONTHS.min)
          .max(INACTIVE_MONTHS.max)
          .optional()
          .describe('Counts contacts for this value in place of that of the rule.'),
        messages: z.coerce.number().int().min(1).max(MAX_INACTIVE_MESSAGES).optional(),
      }),
      response,
      narrowBy: [],
      handle: async ({ caller: { accountId }, query }) => ({
        sunset: await rules.get(accountId, definedFields(query)),
      }),
    }),
    route('PUT /web-setup/contacts/sunset', {
      operationId: 'putSunset',
      refusesTestKeys: 'whileSequenceActive',
      summary: 'Set the sunset rule',
      description:
        'While it is on, it finds contacts that have opened and clicked nothing for `months` months while they received `messages` messages, and ends marketing mail to them `noticeDays` days later, as an opt-out with the method `sunset`. Automatic opens do not count. At most 5 % of the contacts on a day.',
      body: input,
      example: { ...DEFAULT_RULE },
      response,
      handle: async ({ caller: { accountId }, body }) => {
        await rules.put(accountId, body);
        return { sunset: await rules.get(accountId) };
      },
    }),
  ];
}
