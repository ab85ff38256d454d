import * as z from 'zod';
import { DAY, HOUR } from '../../core/clock.ts';
import { recordOf } from '../../core/record-of.ts';
import { invalid, isRefusal, type Refusal } from '../../core/refusal.ts';
import {
  MAX_SERIES,
  messageSeries,
  SERIES_INTERVALS,
  type SeriesInterval,
  type SeriesQuery,
} from '../../events/message-stats.ts';
import type { Context } from '../../store/context.ts';
import { COUNTED_OUTCOMES } from '../../store/messages/hourly-counts.ts';
import { NO_ACCOUNT } from '../../store/readers/reads.ts';
import { type Route, routesOf } from '../route.ts';
import { requestTime } from './fields.ts';
import { tagFilter } from './sending/send-schemas.ts';

/** The longest period of a request, and the period of a request without `from`. */
const PERIODS: Record<SeriesInterval, { max: number; default: number; text: string }> = {
  hour: { max: 31 * DAY, default: DAY, text: '31 days' },
  day: { max: 366 * DAY, default: 30 * DAY, text: '366 days' },
};

const count = z.int();
const point = z
  .object({
    at: z.string().describe('The beginning of the interval (UTC).'),
    ...recordOf(COUNTED_OUTCOMES, () => count),
  })
  .meta({ id: 'StatisticsPoint' });

export const statisticsSchema = z
  .object({
    interval: z.enum(SERIES_INTERVALS),
    from: z.string(),
    to: z.string(),
    series: z.array(z.object({ name: z.string().optional(), points: z.array(point) })),
  })
  .meta({ id: 'Statistics' });

const period = {
  interval: z.enum(SERIES_INTERVALS).default('hour'),
  from: requestTime.optional().describe('Start, inclusive. Default: 24 hours or 30 days before `to`.'),
  to: requestTime.optional().describe('End, exclusive. Default: now.'),
};

const DESCRIPTION = `Intervals begin at full hours or days (UTC); those without messages are omitted. \`deferred\` counts failed attempts, \`opened\` and \`clicked\` the first of each message. With \`by\` there are at most ${MAX_SERIES} series, the largest first; the others are added up in \`other\`. At most 31 days by hour, 366 days by day.`;

const COMMON = {
  description: DESCRIPTION,
  response: {
    description: 'The series.',
    data: statisticsSchema,
    example: {
      interval: 'hour' as const,
      from: '2026-01-31T12:00:00.000Z',
      to: '2026-01-31T13:00:00.000Z',
      series: [
        {
          points: [
            {
              at: '2026-01-31T12:00:00.000Z',
              accepted: 120,
              delivered: 117,
              deferred: 4,
              bounced: 2,
              failed: 0,
              cancelled: 0,
              complained: 0,
              opened: 51,
              clicked: 8,
              unsubscribed: 1,
            },
          ],
        },
      ],
    },
  },
  narrowBy: ['from', 'to'],
};

const ofAccount = routesOf({
  tag: 'Messages and events',
  scope: 'setup',
  permissions: ['read', 'operator'],
});
const ofInstallation = routesOf({ tag: 'Queue', scope: 'operator' });

/** `/web-setup/statistics`: volume and outcomes over time. */
export function statisticsRoutes({ clock, reader }: Pick<Context, 'clock' | 'reader'>): Route[] {
  return [
    ofAccount('GET /web-setup/statistics', {
      ...COMMON,
      operationId: 'getStatistics',
      summary: 'Get the outcomes of messages over time',
      query: z.object({
        ...period,
        by: z.enum(['none', 'domain', 'provider']).default('none'),
        tag: tagFilter.optional(),
      }),
      handle: async ({ caller, query }) => {
        const range = rangeOf(query, clock.now());
        if (isRefusal(range)) return range;
        const by = query.by === 'none' ? null : query.by;
        const { accountId } = caller;
        if (query.tag !== undefined && by !== null)
          return invalid('by', 'cannot be given together with `tag`');
        return reader.query(accountId, messageSeries, { ...range, by, accountId, tag: query.tag });
      },
    }),
    ofInstallation('GET /web-setup/installation/statistics', {
      ...COMMON,
      operationId: 'getInstallationStatistics',
      summary: 'Get the outcomes of the messages of all accounts over time',
      query: z.object({ ...period, by: z.enum(['none', 'account', 'domain', 'provider']).default('none') }),
      handle: async ({ query }) => {
        const range = rangeOf(query, clock.now());
        if (isRefusal(range)) return range;
        const by = query.by === 'none' ? null : query.by;
        return reader.query(NO_ACCOUNT, messageSeries, { ...range, by });
      },
    }),
  ];
}

interface PeriodQuery {
  interval: SeriesInterval;
  from?: string | undefined;
  to?: string | undefined;
}

function rangeOf(
  { interval, ...query }: PeriodQuery,
  now: number,
): Pick<SeriesQuery, 'interval' | 'from' | 'to'> | Refusal {
  const { max, default: length, text } = PERIODS[interval];
  const to = query.to === undefined ? Math.max(now, HOUR) : Date.parse(query.to);
  const from = query.from === undefined ? to - length : Date.parse(query.from);
  if (from >= to) return invalid('from', 'must be before `to`');
  if (to - from > max)
    return invalid('from', `must be at most ${text} before \`to\` with interval ${interval}`);
  return { interval, from, to };
}
