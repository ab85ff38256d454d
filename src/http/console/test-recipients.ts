import { testPeople } from '../../sending/test-messages.ts';
import type { Context } from '../../store/context.ts';
import type { ConsoleAccess } from './access.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';

/** `GET /console/test-recipients`: the addresses of the people who can receive test messages of the account. */
export function testRecipientRoutes(
  { tables }: Pick<Context, 'tables'>,
  { access }: { access: ConsoleAccess },
): ConsoleRoute[] {
  return [
    consoleRoute('GET /console/test-recipients', {
      operationId: 'listTestRecipients',
      summary: 'List who can receive test messages',
      access: 'send',
      handle: ({ caller }) => {
        const { person } = access.sessionOf(caller);
        return { recipients: [...testPeople(tables, caller.accountId, person.id).values()] };
      },
    }),
  ];
}
