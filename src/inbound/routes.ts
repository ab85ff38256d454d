import { accountLimitReached, invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { returnPathDomain } from '../domains/names.ts';
import { normalizeDomain } from '../mail/address.ts';
import type { Context } from '../store/context.ts';
import type { InboundRouteRow, RouteAction, SpamPolicy } from '../store/inbound/inbound-routes.ts';
import type { NamedPageFilter, Page } from '../store/rows/page.ts';
import type { Tables } from '../store/tables.ts';

/*
 * Inbound routes: the addresses of an account whose mail is received. A route belongs to a domain of the account, and its host is
 * that domain or a name below it.
 */

export interface RouteInput {
  name: string;
  /** `support@in.example.com` or `*@in.example.com`. */
  match: string;
  domainId: string;
  action: RouteAction;
  webhookId?: string | null | undefined;
  spamPolicy: SpamPolicy;
  isActive: boolean;
}

export type RoutePatch = { [Field in keyof RouteInput]?: RouteInput[Field] | undefined };

const MAX_ROUTES = 1000;
/** The local part of a route for every address of its host. */
export const ANY_LOCAL = '*';

/** Starts nothing. `hostname`: of this server, whose addresses are its own. */
export function createInboundRoutes({
  tables,
  reader,
  writer,
  clock,
  ids,
  config: { hostname },
}: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock' | 'ids'> & { config: { hostname: string } }) {
  /** The columns that the fields determine. */
  function columnsOf(tx: Tables, accountId: string, fields: RouteInput) {
    const domain = tx.domains.get(accountId, fields.domainId);
    if (domain === null) return refuse('DOMAIN_NOT_FOUND', `There is no domain ${fields.domainId}`);
    const match = parseMatch(fields.match, domain.name, hostname);
    if (isRefusal(match)) return match;
    const webhookId = fields.webhookId ?? null;
    if (fields.action === 'webhook' && webhookId === null)
      return invalid('webhookId', 'is required by the action "webhook"');
    if (fields.action === 'store' && webhookId !== null)
      return invalid('webhookId', 'is only for the action "webhook"');
    if (webhookId !== null && tx.webhooks.get(accountId, webhookId) === null)
      return refuse('WEBHOOK_NOT_FOUND', `There is no webhook ${webhookId}`);
    return {
      domain_id: domain.domain_id,
      name: fields.name,
      ...match,
      action: fields.action,
      webhook_id: webhookId,
      spam_policy: fields.spamPolicy,
      is_active: fields.isActive ? (1 as const) : (0 as const),
    };
  }

  function duplicate(tx: Tables, row: Omit<InboundRouteRow, 'seq'>): Refusal | null {
    const other = tx.inboundRoutes.byMatch(row.account_id, row.host, row.local);
    return other === null || other.route_id === row.route_id
      ? null
      : refuse('INBOUND_ROUTE_EXISTS', `The route ${other.route_id} has the match ${matchOf(row)} already`);
  }

  return {
    /** Newest first. */
    list: (filter: NamedPageFilter): Promise<Page<InboundRouteRow>> =>
      reader.table(filter.accountId, 'inboundRoutes', 'list', filter),
    get: (accountId: string, routeId: string): InboundRouteRow | Refusal =>
      findRoute(tables, accountId, routeId),
    create: (accountId: string, fields: RouteInput): Promise<InboundRouteRow | Refusal> =>
      writer.run((tx): InboundRouteRow | Refusal => {
        const columns = columnsOf(tx, accountId, fields);
        if (isRefusal(columns)) return columns;
        if (tx.inboundRoutes.count(accountId) >= MAX_ROUTES)
          return accountLimitReached('inboundRoutes', MAX_ROUTES, { resources: 'inbound routes' });
        const now = clock.now();
        const row = {
          route_id: ids.make('route'),
          account_id: accountId,
          ...columns,
          created_at: now,
          updated_at: now,
        };
        const refusal = duplicate(tx, row);
        if (refusal !== null) return refusal;
        tx.inboundRoutes.insert(row);
        return findRoute(tx, accountId, row.route_id);
      }, accountId),
    /** Changes the fields that are present. */
    update: (accountId: string, routeId: string, patch: RoutePatch): Promise<InboundRouteRow | Refusal> =>
      writer.run((tx): InboundRouteRow | Refusal => {
        const row = findRoute(tx, accountId, routeId);
        if (isRefusal(row)) return row;
        const action = patch.action ?? row.action;
        const fields: RouteInput = {
          name: patch.name ?? row.name,
          match: patch.match ?? matchOf(row),
          domainId: patch.domainId ?? row.domain_id,
          action,
          // The webhook of the former action is not needed any more.
          webhookId:
            patch.webhookId === undefined ? (action === 'webhook' ? row.webhook_id : null) : patch.webhookId,
          spamPolicy: patch.spamPolicy ?? row.spam_policy,
          isActive: patch.isActive ?? row.is_active === 1,
        };
        const columns = columnsOf(tx, accountId, fields);
        if (isRefusal(columns)) return columns;
        const changed = { ...row, ...columns, updated_at: clock.now() };
        const refusal = duplicate(tx, changed);
        if (refusal !== null) return refusal;
        tx.inboundRoutes.update(changed);
        return changed;
      }, accountId),
    /** Mail that was received stays. */
    remove: (accountId: string, routeId: string): Promise<InboundRouteRow | Refusal> =>
      writer.run((tx): InboundRouteRow | Refusal => {
        const row = findRoute(tx, accountId, routeId);
        if (!isRefusal(row)) tx.inboundRoutes.remove(row.seq);
        return row;
      }, accountId),
  };
}

/** The address of a route, as the API has it. */
export function matchOf({ local, host }: Pick<InboundRouteRow, 'local' | 'host'>): string {
  return `${local}@${host}`;
}

/** RFC 5321 §4.5.3.1.1. */
const MAX_LOCAL = 64;

function parseMatch(
  text: string,
  domain: string,
  hostname: string,
): Pick<InboundRouteRow, 'local' | 'host'> | Refusal {
  const at = text.lastIndexOf('@');
  const local = text.slice(0, Math.max(at, 0)).trim().toLowerCase();
  const host = at < 0 ? null : normalizeDomain(text.slice(at + 1).trim());
  const example = `such as support@in.${domain} or *@in.${domain}`;
  if (host === null || local === '') return invalid('match', `must be an address ${example}`);
  if (local !== ANY_LOCAL && (local.length > MAX_LOCAL || !/^[\p{L}\p{N}!#$%&'+/=?^_`{|}~.-]+$/u.test(local)))
    return invalid(
      'match',
      `must have letters, digits and .-_+ before the @, or * for every address, ${example}`,
    );
  if (host !== domain && !host.endsWith(`.${domain}`))
    return invalid('match', `must be at ${domain} or below it, ${example}`);
  // Bounces, complaints and reports keep their own addresses.
  if (host === hostname || returnPathDomain(host) !== null)
    return invalid('match', `${host} receives bounces and reports: choose another name below ${domain}`);
  return { local, host };
}

function findRoute(tables: Tables, accountId: string, routeId: string): InboundRouteRow | Refusal {
  return (
    tables.inboundRoutes.get(accountId, routeId) ??
    refuse('INBOUND_ROUTE_NOT_FOUND', `There is no inbound route ${routeId}`)
  );
}
