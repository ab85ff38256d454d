import { type Refusal, refuse } from '../core/refusal.ts';
import { TRIGGER_KINDS } from '../store/campaigns/sequences.ts';
import type { Tables } from '../store/tables.ts';
import type { Route } from './route.ts';

/*
 * Nothing that is requested with a test key makes mail leave. What it sends itself is simulated (sending/draft); the
 * operations here would release mail that others sent, or let contacts enter sequences, whose mail is live.
 */

/** Operations that are refused to test keys. */
export const RELEASING: ReadonlySet<string> = new Set([
  'retryMessage',
  'rescheduleMessage',
  'resumeCampaign',
  'chooseCampaignWinner',
  'resumeSending',
  'createSequence',
  'updateSequence',
  'patchSequence',
  'activateSequence',
  'recordContactEvent',
]);

/** Operations that change contacts, which are the account's own: refused while a sequence is active. */
export const CHANGING_CONTACTS: ReadonlySet<string> = new Set([
  'createContact',
  'replaceContactFields',
  'updateContact',
  'importContacts',
  'addSubscription',
  'putSubscription',
  'patchSubscription',
  'deleteSubscription',
  'putSunset',
]);

/** Refuses what a test key may not do. */
export function withTestKeyCheck(route: Route, { sequences }: Pick<Tables, 'sequences'>): Route {
  const releases = RELEASING.has(route.operationId);
  if (!releases && !CHANGING_CONTACTS.has(route.operationId)) return route;
  const refusalFor = (accountId: string): Refusal | null => {
    if (releases) return refuse('KEY_NOT_ALLOWED', 'This is a test key: it cannot make live mail leave');
    const isActive = TRIGGER_KINDS.some((kind) => sequences.triggeredBy(accountId, kind).length > 0);
    return isActive
      ? refuse(
          'KEY_NOT_ALLOWED',
          'This is a test key: while a sequence is active, which sends live mail to contacts, it cannot change contacts',
        )
      : null;
  };
  return {
    ...route,
    refusals: [...new Set([...route.refusals, 'KEY_NOT_ALLOWED' as const])],
    handle: (call) => {
      const { accountId, livemode } = call.caller;
      return (livemode ? null : refusalFor(accountId)) ?? route.handle(call);
    },
  };
}
