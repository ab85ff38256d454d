import * as z from 'zod';
import type { Caller } from '../../accounts/authenticate.ts';
import { callerBlock } from '../../accounts/caller-addresses.ts';
import { isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import type { PasswordCredentials, Verified } from '../../people/credentials.ts';
import { MAX_PASSWORD } from '../../people/passwords.ts';
import { lacksCredential, type Session, type Sessions } from '../../people/sessions.ts';
import type { ConsoleAccess, ConsoleReason } from './access.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';
import type { SignIn, SignInCall } from './session-routes.ts';

export type { TotpSetup } from '../../people/credentials.ts';

/* Sign-in with a password and TOTP, the change of both, and the confirmation of a session. */

const password = z.string().min(1).max(MAX_PASSWORD);
const totp = z.string().max(20).optional();

/**
 * `/session/password`, `/session/reauthenticate`, `/me/password` and `/me/totp`. Changes need a session that was
 * confirmed recently. A wrong password counts against the address of the client.
 */
export function credentialRoutes({
  access,
  sessions,
  credentials,
  signIn,
}: {
  access: ConsoleAccess;
  sessions: Sessions;
  credentials: PasswordCredentials;
  signIn: SignIn;
}): ConsoleRoute[] {
  const sessionOf = (call: { caller: Caller }): Session => access.sessionOf(call.caller);

  /** The refusal of a sign-in that did not succeed; null: it succeeded. */
  async function refusalOf(
    verified: Verified | Refusal,
    email: string,
    call: SignInCall,
  ): Promise<Refusal | null> {
    if (isRefusal(verified)) return verified;
    if (typeof verified === 'object') return null;
    if (verified === 'wrong')
      return signIn.failed('password', email, 'Address, password or code are not correct', call);
    return refuse('UNAUTHENTICATED', MESSAGES[verified], {
      details: [{ field: 'totp', reason: REASONS[verified], message: MESSAGES[verified] }],
    });
  }

  return [
    consoleRoute('POST /console/session/password', {
      operationId: 'signInWithPassword',
      summary: 'Sign in with a password',
      access: 'anyone',
      ownAudit: true,
      body: z.strictObject({ email: z.string().min(1).max(320), password, totp }),
      handle: async (call) => {
        const { body } = call;
        const verified = await credentials.verify({ ...body, client: callerBlock(call.address) });
        const refusal = await refusalOf(verified, body.email, call);
        if (refusal !== null || isRefusal(verified) || typeof verified !== 'object')
          return refusal ?? refuse('UNAUTHENTICATED', MESSAGES.incomplete);
        const opened = await sessions.open(verified.personId, 'password', signIn.browserOf(call));
        return isRefusal(opened) ? opened : signIn.succeeded(opened, 'password', call);
      },
    }),
    consoleRoute('POST /console/session/reauthenticate', {
      operationId: 'confirmSession',
      summary: 'Confirm the session with a password',
      access: 'person',
      body: z.strictObject({ password, totp }),
      handle: async (call) => {
        const session = sessionOf(call);
        const { email, id } = session.person;
        const verified = await credentials.verify({
          ...call.body,
          email,
          client: callerBlock(call.address),
          session,
        });
        const refusal = await refusalOf(verified, email, call);
        // 403: the session itself stays valid.
        if (refusal !== null)
          return refusal.code === 'UNAUTHENTICATED'
            ? refuse('INSUFFICIENT_SCOPE', refusal.message, refusal.extras)
            : refusal;
        if (typeof verified === 'object' && 'personId' in verified && verified.personId === id)
          await sessions.confirm(session);
        return {};
      },
    }),
    consoleRoute('PUT /console/me/password', {
      operationId: 'setPassword',
      summary: 'Set the password',
      access: 'person',
      confirmed: true,
      addsCredential: true,
      body: z.strictObject({ password: z.string().max(4 * MAX_PASSWORD) }),
      handle: async (call) => (await credentials.setPassword(sessionOf(call), call.body.password)) ?? {},
    }),
    consoleRoute('DELETE /console/me/password', {
      operationId: 'removePassword',
      summary: 'Remove the password',
      access: 'person',
      confirmed: true,
      handle: async (call) => (await credentials.removePassword(sessionOf(call))) ?? {},
    }),
    consoleRoute('POST /console/me/totp', {
      operationId: 'beginTotp',
      summary: 'Begin to set up an authenticator app',
      access: 'person',
      confirmed: true,
      addsCredential: true,
      handle: (call) => credentials.beginTotp(sessionOf(call)),
    }),
    consoleRoute('POST /console/me/totp/verify', {
      operationId: 'setTotp',
      summary: 'Set up an authenticator app',
      access: 'person',
      confirmed: true,
      addsCredential: true,
      body: z.strictObject({ state: z.string().max(500), code: z.string().max(20) }),
      handle: async (call) => {
        const session = sessionOf(call);
        const refusal = await credentials.confirmTotp(session, call.body.state, call.body.code);
        if (refusal !== null) return refusal;
        // Together with the password it is the first credential.
        if (lacksCredential(session) && session.person.hasPassword) await sessions.confirm(session);
        return {};
      },
    }),
  ];
}

const MESSAGES = {
  totp: 'Enter the code of the authenticator application',
  incomplete:
    'A password signs in only together with an authenticator application: sign in with a link and set it up',
};
const REASONS = { totp: 'TOTP', incomplete: 'TOTP_NOT_SET_UP' } as const satisfies Record<
  string,
  ConsoleReason
>;
