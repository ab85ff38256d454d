import * as z from 'zod';
import { RATE_FIGURES } from '../../events/event-types.ts';
import { listLimits, type SendingMonitor } from '../../reputation/monitor.ts';
import type { Context } from '../../store/context.ts';
import { LIMIT_LEVELS, RATE_SIGNALS } from '../../store/sending-limits.ts';
import { mapResult, type Route, routesOf } from '../route.ts';

const route = routesOf({ tag: 'Reputation', scope: 'setup', permissions: ['read', 'send'] });

export const sendingLimit = z
  .object({
    limitId: z.string(),
    accountId: z.string(),
    level: z
      .enum(LIMIT_LEVELS)
      .describe(
        '`notice`: mail is sent as usual. `slow`: at `perMinute`. `pause`: mail waits until it is resumed.',
      ),
    useCase: z.enum(['tx', 'mk']),
    domain: z.string().nullable().describe('`null`: all domains of the account.'),
    domainId: z.string().nullable(),
    provider: z.string().nullable().describe('`null`: all mailbox providers.'),
    reason: z.enum(RATE_SIGNALS),
    figures: RATE_FIGURES,
    perMinute: z.int().nullable(),
    since: z.iso.datetime(),
    text: z.string().describe('What is limited, with the figures, in a sentence.'),
    remedy: z.string().describe('What to do.'),
  })
  .meta({ id: 'SendingLimit' });

const EXAMPLE: z.output<typeof sendingLimit> = {
  limitId: 'limit_1769860800000_9z1x3c5v7b2n',
  accountId: 'acct_7f3k2m9x0q1z',
  level: 'pause',
  useCase: 'mk',
  domain: 'example.com',
  domainId: 'domain_1769860800000_8m2k4x7q1zab',
  provider: null,
  reason: 'complaints',
  figures: { messages: 4100, events: 17, rate: 0.415, lowerBound: 0.225, limit: 0.3 },
  perMinute: null,
  since: '2026-01-31T12:00:00.000Z',
  text: 'Marketing mail of example.com is stopped: 0.415 % of 4100 messages were complained about (limit: 0.3 %).',
  remedy: 'Send only to people who asked for this mail.',
};

const result = z.object({ limit: sendingLimit }).meta({ id: 'SendingLimitResult' });

/** `/web-setup/reputation/limits`: the automatic limits of an account. */
export function reputationLimitRoutes(
  { tables }: Pick<Context, 'tables'>,
  { sendingMonitor }: { sendingMonitor: Pick<SendingMonitor, 'resume'> },
): Route[] {
  return [
    route('GET /web-setup/reputation/limits', {
      operationId: 'listSendingLimits',
      summary: 'List the automatic limits in force',
      description:
        'Mail of the account, of a domain or to a mailbox provider that is slowed or stopped because too much of it bounced, was complained about or was blocked, and what comes close. Campaigns that were stopped have `pausedReason`.',
      response: {
        description: 'The limits, newest first; at most 200.',
        data: z.object({ limits: z.array(sendingLimit) }),
        example: { limits: [EXAMPLE] },
      },
      handle: ({ caller }) => ({ limits: listLimits(tables, caller.accountId) }),
    }),
    route('POST /web-setup/reputation/limits/{limitId}/resume', {
      operationId: 'resumeSending',
      refusesTestKeys: 'always',
      // Messages that are sent again wait for storage.
      stores: () => false,
      auditDetail: ({ reason }) => reason,
      summary: 'End an automatic limit',
      description:
        'Mail is sent as usual again, and what was held is released. The counts until now do not limit it again. The event `sending_resumed` records the reason.',
      body: z
        .object({ reason: z.string().describe('Why it may continue; at most 200 characters.') })
        .meta({ id: 'ResumeSendingInput' }),
      example: { reason: 'The list without confirmation was deleted' },
      response: {
        description: 'The limit that has ended.',
        data: result,
        example: { limit: EXAMPLE },
      },
      refusals: ['NOT_FOUND'],
      handle: async ({ caller, params: { limitId }, body: { reason } }) =>
        mapResult(
          await sendingMonitor.resume(caller.accountId, limitId, { reason, by: caller.keyId }),
          (limit) => ({ limit }),
        ),
    }),
  ];
}
