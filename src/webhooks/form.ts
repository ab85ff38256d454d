import { isIP } from 'node:net';
import { invalid, isRefusal, type Refusal } from '../core/refusal.ts';
import { isForbidden, isPublic } from '../dns/address-kinds.ts';
import { EVENT_KINDS, isEventKind } from '../events/event-types.ts';

/** What a webhook may be: its address, what it takes, what it is called. */
export const EVERY_EVENT = '*';

export const LONGEST_URL = 2048;

/** As it was written; a Refusal when it can never be called. Names are looked up when they are called. */
export function webhookUrl(text: string, allowPrivateNetworks: boolean): string | Refusal {
  const url = text.trim();
  if (url.length > LONGEST_URL) return invalid('url', `must have at most ${LONGEST_URL} characters`);
  if (/[\s\p{Cc}]/u.test(url) || !URL.canParse(url))
    return invalid('url', 'must be an address such as https://example.com/hooks');
  const { protocol, username, password, hostname } = new URL(url);
  if (protocol !== 'https:' && protocol !== 'http:') return invalid('url', 'must begin with https or http');
  if (username !== '' || password !== '')
    return invalid(
      'url',
      'must not hold a user name or password; put a token into its path, or check signatures',
    );
  const address = literalAddress(hostname);
  if (address !== null && !mayBeCalled(address, allowPrivateNetworks))
    return invalid('url', `${address} may not be called`);
  return url;
}

/** The address that a host of a parsed URL is, in any notation; null: it is a name. */
export function literalAddress(hostname: string): string | null {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return isIP(bare) === 0 ? null : bare;
}

/** Link-local and metadata addresses never; private ones when the operator lets them be called. */
export function mayBeCalled(address: string, allowPrivateNetworks: boolean): boolean {
  return !isForbidden(address) && (allowPrivateNetworks || isPublic(address));
}

/** The kinds without repetition; `*` alone when it is among them. */
export function webhookEvents(wanted: string | readonly string[]): string[] | Refusal {
  const kinds = [...new Set(typeof wanted === 'string' ? [wanted] : wanted)];
  if (kinds.length === 0) return invalid('events', 'must name at least one kind of event, or "*"');
  const unknown = kinds.findIndex((kind) => kind !== EVERY_EVENT && !isEventKind(kind));
  if (unknown !== -1) return invalid(`events[${unknown}]`, `must be "*" or one of ${EVENT_KINDS.join(', ')}`);
  return kinds.includes(EVERY_EVENT) ? [EVERY_EVENT] : kinds;
}

const LONGEST_NAME = 100;

/** What it is called when its account gives it no name. */
export function webhookName(name: string | undefined, description: string | null, url: string): string {
  return (
    name ??
    (description === null ? new URL(url).host : Array.from(description).slice(0, LONGEST_NAME).join(''))
  );
}

export interface WebhookWish {
  url: string;
  events: string | readonly string[];
  name?: string | undefined;
  description?: string | null | undefined;
  isActive?: boolean | undefined;
}

export interface WebhookFields {
  url: string;
  events: string[];
  name: string;
  description: string | null;
  isActive: boolean;
}

/** Reads the fields that are given; the others keep what they had. */
export function changedFields(
  had: WebhookFields,
  wish: { [Field in keyof WebhookWish]?: WebhookWish[Field] | undefined },
  allowPrivateNetworks: boolean,
): WebhookFields | Refusal {
  const url = wish.url === undefined ? had.url : webhookUrl(wish.url, allowPrivateNetworks);
  if (isRefusal(url)) return url;
  const events = wish.events === undefined ? had.events : webhookEvents(wish.events);
  if (isRefusal(events)) return events;
  return {
    url,
    events,
    name: wish.name ?? had.name,
    description: wish.description === undefined ? had.description : wish.description || null,
    isActive: wish.isActive ?? had.isActive,
  };
}
