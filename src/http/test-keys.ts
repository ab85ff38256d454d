import { type Refusal, refuse } from '../core/refusal.ts';
import { TRIGGER_KINDS } from '../store/campaigns/sequences.ts';
import type { Tables } from '../store/tables.ts';
import type { AnyCall, Route } from './route.ts';

/*
 * Nothing that is requested with a test key makes mail leave. What it sends itself is simulated (sending/draft). The
 * operations with `refusesTestKeys` would release mail that others sent, or let contacts enter sequences, whose mail is live.
 */

type ReadTables = Pick<Tables, 'sequences' | 'domains'>;

/** Returns why a test key is refused, by the rule of the operation; null: it is not. */
const RULES: Record<
  NonNullable<Route['refusesTestKeys']>,
  (tables: ReadTables, accountId: string, call: AnyCall) => string | null
> = {
  always: () => 'it cannot make live mail leave',
  whileSequenceActive: ({ sequences }, accountId) =>
    TRIGGER_KINDS.some((kind) => sequences.triggeredBy(accountId, kind).length > 0)
      ? 'while a sequence is active, which sends live mail to contacts, it cannot change contacts'
      : null,
  whileDomainFailed: ({ domains }, accountId, { params: { domainId } }) =>
    domains.get(accountId, String(domainId))?.status === 'FAILED'
      ? 'while the verification of the domain has failed, which holds its live mail, it cannot verify or change it'
      : null,
};

/** Refuses what a test key may not do. */
export function withTestKeyCheck(route: Route, tables: ReadTables): Route {
  if (route.refusesTestKeys === undefined) return route;
  const whyRefused = RULES[route.refusesTestKeys];
  const refusalOf = (call: AnyCall): Refusal | null => {
    const why = call.caller.livemode ? null : whyRefused(tables, call.caller.accountId, call);
    return why === null ? null : refuse('KEY_NOT_ALLOWED', `This is a test key: ${why}`);
  };
  return {
    ...route,
    refusals: [...new Set([...route.refusals, 'KEY_NOT_ALLOWED' as const])],
    handle: (call) => refusalOf(call) ?? route.handle(call),
  };
}
