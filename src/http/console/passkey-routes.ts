import * as z from 'zod';
import type { Caller } from '../../accounts/authenticate.ts';
import { isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import { authenticationSchema, type Passkeys, registrationSchema } from '../../people/passkeys.ts';
import { lacksCredential, type Session, type Sessions } from '../../people/sessions.ts';
import { Reply } from '../route.ts';
import type { ConsoleAccess } from './access.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';
import type { SignIn } from './session-routes.ts';

/* Sign-in and confirmation with passkeys; passkeys of the person. */

/**
 * `/session/passkey/…` and `/me/passkeys`. Adding and removing need a session that was confirmed recently. Options are
 * refused (`INVALID_STATE`) where passkeys do not work.
 */
export function passkeyRoutes({
  access,
  sessions,
  passkeys,
  signIn,
}: {
  access: ConsoleAccess;
  sessions: Sessions;
  passkeys: Passkeys;
  signIn: SignIn;
}): ConsoleRoute[] {
  const sessionOf = (call: { caller: Caller }): Session => access.sessionOf(call.caller);
  return [
    consoleRoute('POST /console/session/passkey/options', {
      operationId: 'beginPasskey',
      summary: 'Begin to sign in with a passkey',
      access: 'anyone',
      ownAudit: true,
      handle: async () => (passkeys.isAvailable() ? await passkeys.beginAuthentication() : noPasskeys()),
    }),
    consoleRoute('POST /console/session/passkey/verify', {
      operationId: 'signInWithPasskey',
      summary: 'Sign in with a passkey',
      access: 'anyone',
      ownAudit: true,
      body: z.object({ response: authenticationSchema }),
      handle: async (call) => {
        const personId = await passkeys.verify(call.body.response);
        if (personId === null)
          return signIn.failed(
            'passkey',
            '',
            'This passkey is not known here, or the sign-in took too long',
            call,
          );
        const opened = await sessions.open(personId, 'passkey', signIn.browserOf(call));
        return isRefusal(opened) ? opened : signIn.succeeded(opened, 'passkey', call);
      },
    }),
    consoleRoute('POST /console/session/passkey/confirm', {
      operationId: 'confirmSessionWithPasskey',
      summary: 'Confirm the session with a passkey',
      access: 'person',
      body: z.object({ response: authenticationSchema }),
      handle: async (call) => {
        const session = sessionOf(call);
        const personId = await passkeys.verify(call.body.response);
        if (personId !== session.person.id)
          return refuse(
            'INSUFFICIENT_SCOPE',
            'This is not one of your passkeys, or it took too long: try again',
          );
        await sessions.confirm(session);
        return {};
      },
    }),
    consoleRoute('GET /console/me/passkeys', {
      operationId: 'listMyPasskeys',
      summary: 'List passkeys',
      access: 'person',
      handle: (call) => ({ passkeys: passkeys.list(sessionOf(call).person.id) }),
    }),
    consoleRoute('POST /console/me/passkeys/options', {
      operationId: 'beginMyPasskey',
      summary: 'Begin to add a passkey',
      access: 'person',
      confirmed: true,
      addsCredential: true,
      handle: async (call) =>
        passkeys.isAvailable() ? await passkeys.beginRegistration(sessionOf(call)) : noPasskeys(),
    }),
    consoleRoute('POST /console/me/passkeys', {
      operationId: 'addMyPasskey',
      summary: 'Add a passkey',
      access: 'person',
      confirmed: true,
      addsCredential: true,
      body: z.object({ name: z.string().trim().min(1).max(100), response: registrationSchema }),
      handle: async (call) => {
        const session = sessionOf(call);
        const added = await passkeys.register(session, call.body.name, call.body.response);
        if (isRefusal(added)) return added;
        if (lacksCredential(session)) await sessions.confirm(session);
        return new Reply({ data: added }, { status: 201 });
      },
    }),
    consoleRoute('DELETE /console/me/passkeys/{passkeyId}', {
      operationId: 'removeMyPasskey',
      summary: 'Remove a passkey',
      access: 'person',
      confirmed: true,
      params: { passkeyId: z.string().max(1400) },
      handle: async (call) => {
        const removed = await passkeys.remove(sessionOf(call), call.params.passkeyId);
        if (isRefusal(removed)) return removed;
        return removed ? {} : refuse('NOT_FOUND', 'This passkey does not exist');
      },
    }),
  ];
}

function noPasskeys(): Refusal {
  return refuse(
    'INVALID_STATE',
    'Passkeys need a console with https, or with the host name localhost: see console.url',
  );
}
