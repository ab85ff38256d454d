import * as z from 'zod';
import { type Clock, HOUR } from '../../core/clock.ts';
import { createLru } from '../../core/lru.ts';
import { isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import type { Acceptance } from '../../sending/accept.ts';
import type { Context } from '../../store/context.ts';
import { findTemplate } from '../../templates/templates.ts';
import { successBody } from '../responses.ts';
import { Reply } from '../route.ts';
import type { ConsoleAccess } from './access.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';

/*
 * `POST /console/test-messages`: a template to the person who is signed in. The recipient is the address of the session's
 * person, never one of the request; therefore the person need not be a contact, and needs no consent for marketing mail.
 * The message belongs to no campaign and no group, so that it counts in neither.
 */

/** Before the subject of a test message. */
export const TEST_PREFIX = '[Test] ';
export const MAX_TESTS_PER_HOUR = { person: 20, account: 100 };
const MAX_LISTS = 20_000;
const MAX_BODY_BYTES = 256 * 1024;

export function testMessageRoutes(
  { clock, tables }: Pick<Context, 'clock' | 'tables'>,
  { access, acceptance }: { access: ConsoleAccess; acceptance: Acceptance },
): ConsoleRoute[] {
  const ofPeople = createHourlyLimit(clock, MAX_TESTS_PER_HOUR.person);
  const ofAccounts = createHourlyLimit(clock, MAX_TESTS_PER_HOUR.account);
  return [
    consoleRoute('POST /console/test-messages', {
      operationId: 'sendTestMessage',
      summary: 'Send a test message',
      access: 'send',
      limit: MAX_BODY_BYTES,
      body: z.strictObject({
        stream: z.enum(['tx', 'mk']),
        from: z.string().min(1).max(500),
        templateId: z.string().max(100),
        /** Default: that of the template. */
        subject: z.string().max(998).optional(),
        templateVariables: z.record(z.string().max(1000), z.unknown()).optional(),
      }),
      handle: async ({ caller, body, warnings }) => {
        const { accountId } = caller;
        const { stream, templateId, subject, ...mail } = body;
        const { person } = access.sessionOf(caller);
        const account = tables.accounts.get(accountId);
        if (account === null) return refuse('ACCOUNT_NOT_FOUND', `There is no account ${accountId}`);
        const template = findTemplate(tables, accountId, templateId);
        if (isRefusal(template)) return template;
        const slots = [ofPeople.take(person.id), ofAccounts.take(accountId)];
        let isAccepted = false;
        try {
          if (slots.includes(null)) return tooMany();
          const accepted = await acceptance.accept({
            sender: { account, useCase: stream, allowFrom: [], allowEssential: false, isOwnTest: true },
            body: {
              ...mail,
              templateId,
              to: person.email,
              subject: `${TEST_PREFIX}${subject ?? template.subject ?? ''}`,
            },
            idempotency: null,
            envelope: ({ recipients }, ofSend) =>
              successBody({ messageId: recipients[0]?.messageId ?? '', recipient: person.email }, [
                ...warnings,
                ...ofSend,
              ]),
          });
          if (isRefusal(accepted)) return accepted;
          isAccepted = true;
          return new Reply({ raw: accepted.body });
        } finally {
          if (!isAccepted) for (const slot of slots) slot?.release();
        }
      },
    }),
  ];
}

function tooMany(): Refusal {
  const { person, account } = MAX_TESTS_PER_HOUR;
  return refuse(
    'RATE_LIMITED',
    `At most ${person} test messages per hour of a person, and ${account} of an account, are sent: try again later`,
  );
}

/** Limits how often something happens within any hour, by key. In memory: it begins at zero after a restart. */
function createHourlyLimit(clock: Clock, max: number) {
  const times = createLru<{ recent: number[] }>(MAX_LISTS);
  return {
    /** Null: the limit is reached. `release` returns what was taken. */
    take: (key: string): { release(): void } | null => {
      const now = clock.now();
      // The clock may have been set back.
      const recent = (times.get(key)?.recent ?? []).filter((at) => Math.abs(now - at) < HOUR);
      if (recent.length >= max) return null;
      times.set(key, { recent: [...recent, now] });
      return {
        release: () => {
          const { recent: last = [] } = times.get(key) ?? {};
          const at = last.indexOf(now);
          if (at !== -1) times.set(key, { recent: last.toSpliced(at, 1) });
        },
      };
    },
  };
}
