import type { Context, Middleware } from 'koa';
import { callerBlock } from '../../accounts/caller-addresses.ts';
import { isRefusal, type Refusal, type RefusalCode, refuse } from '../../core/refusal.ts';
import type { Runtime } from '../../core/runtime.ts';
import { createTokenBuckets } from '../../core/token-bucket.ts';
import type { Oidc } from '../../people/oidc.ts';
import type { Sessions } from '../../people/sessions.ts';
import { respond } from '../front.ts';
import { refusalResponse } from '../responses.ts';
import type { OperationGroup, RequestState } from '../router.ts';
import { oidcCookie } from './cookies.ts';
import type { SignIn, SignInCall } from './session-routes.ts';

/*
 * The pages between the console and the OpenID Connect provider. The browser returns from another site, so these requests
 * are exempt from the check of their origin; the state in the cookie and in the address protects them.
 */

/** What the application shows after a sign-in that failed: `/console/?signInError=<reason>`. */
export type SignInError = 'provider-failed' | 'provider-denied' | 'no-access' | 'expired';

const ERRORS: Partial<Record<RefusalCode, SignInError>> = {
  INSUFFICIENT_SCOPE: 'no-access',
  REQUEST_TIMEOUT: 'expired',
};
const START = '/console/oidc/start';
export const OIDC_CALLBACK = '/console/oidc/callback';
/** The form of a sealed state. */
const STATE = /^[\w-]{1,4000}$/;
/** Requests of one client, each of which can cause a request to the provider. */
const RATE = { burst: 60, perSecond: 1 };
const MAX_CLIENTS = 10_000;

/**
 * The middleware must come before `requestOrigin`, and passes everything on when no provider is configured. Limits a
 * client to 60 requests, then one per second, in memory. Failures redirect to the sign-in page with a reason.
 */
export function oidcPages(
  { clock, log }: Pick<Runtime, 'clock' | 'log'>,
  { oidc, sessions, signIn, url }: { oidc: Oidc; sessions: Sessions; signIn: SignIn; url(): string },
): OperationGroup {
  const requests = createTokenBuckets(clock, RATE, MAX_CLIENTS);
  const cookie = () => oidcCookie(url());

  async function start(ctx: Context): Promise<void> {
    try {
      const { location, state } = await oidc.begin();
      ctx.res.setHeader('Set-Cookie', cookie().write(state));
      redirect(ctx, location);
    } catch (error) {
      log.warn({ err: error }, 'OpenID Connect provider not reached');
      failed(ctx, 'provider-failed');
    }
  }

  async function finish(ctx: Context, call: SignInCall): Promise<void> {
    const cleared = cookie().clear();
    ctx.res.setHeader('Set-Cookie', cleared);
    const state = cookie().read(ctx.headers);
    if (state === null || !STATE.test(state)) return failed(ctx, 'expired');
    let person: string | Refusal;
    try {
      person = await oidc.finish(new URL(`${url()}${OIDC_CALLBACK}?${ctx.querystring}`), state);
    } catch (error) {
      log.warn({ err: error }, 'sign-in with OpenID Connect failed');
      await signIn.failed('oidc', '', 'The provider refused the sign-in', call);
      return failed(ctx, 'provider-denied');
    }
    const opened = isRefusal(person) ? person : await sessions.open(person, 'oidc', signIn.browserOf(call));
    if (isRefusal(opened)) {
      log.warn({ reason: opened.message }, 'sign-in with OpenID Connect refused');
      await signIn.failed('oidc', '', opened.message, call);
      return failed(ctx, ERRORS[opened.code] ?? 'provider-denied');
    }
    const { headers } = await signIn.succeeded(opened, 'oidc', call);
    ctx.res.setHeader('Set-Cookie', [cleared, headers['Set-Cookie'] ?? '']);
    // Browsers send a fragment to no server; the page removes it from the address.
    redirect(ctx, `/console/#/signed-in/${opened.pageToken}`);
  }

  const middleware: Middleware = async (ctx: Context, next) => {
    const isStart = ctx.path === START;
    if (ctx.method !== 'GET' || oidc.name === null || (!isStart && ctx.path !== OIDC_CALLBACK)) return next();
    const state: RequestState = ctx.state;
    const { address } = state.from();
    const { allowed, retryAfterSeconds } = requests.of(callerBlock(address)).take();
    if (!allowed) {
      const refusal = refuse('RATE_LIMITED', 'Too many sign-ins from this address', {
        retryAfter: retryAfterSeconds,
      });
      return respond(ctx, refusalResponse(refusal, state.requestId));
    }
    ctx.res.setHeader('Cache-Control', 'no-store');
    return isStart ? start(ctx) : finish(ctx, { headers: ctx.headers, address });
  };
  return {
    operations: [
      {
        method: 'GET',
        path: START,
        operationId: 'console.beginOidc',
        summary: 'Begin to sign in with the provider',
      },
      {
        method: 'GET',
        path: OIDC_CALLBACK,
        operationId: 'console.signInWithOidc',
        summary: 'Sign in with the provider',
      },
    ],
    middleware,
  };
}

function failed(ctx: Context, reason: SignInError): void {
  redirect(ctx, `/console/?signInError=${reason}`);
}

function redirect(ctx: Context, location: string): void {
  ctx.status = 303;
  ctx.res.setHeader('Location', location);
  ctx.body = '';
}
