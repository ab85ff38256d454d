import { invalid, isRefusal, type Refusal } from '../core/refusal.ts';
import { isForbidden, isPublic, literalAddress } from '../dns/address-kinds.ts';
import { EVENT_KINDS, isEventKind } from '../events/event-types.ts';
import type { WebhookFilter } from '../events/webhook-filter.ts';
import { normalizeDomain } from '../mail/address.ts';
import { hasEvent, type WebhookFormat } from './formats.ts';
import type { WebhookFields } from './resource.ts';

/** Subscribes to all kinds of events. */
export const EVERY_EVENT = '*';

export const MAX_URL_LENGTH = 2048;
const MAX_NAME_LENGTH = 100;

export interface WebhookInput {
  url: string;
  /** Default: `postrider`. */
  format?: WebhookFormat | undefined;
  events: string | readonly string[];
  filter?: WebhookFilter | null | undefined;
  headers?: Readonly<Record<string, string>> | null | undefined;
  name?: string | undefined;
  description?: string | null | undefined;
  isActive?: boolean | undefined;
}

export type WebhookPatch = { [Field in keyof WebhookInput]?: WebhookInput[Field] | undefined };

/** Validates the input of a new webhook and adds the defaults. */
export function newFields(input: WebhookInput, allowPrivateNetworks: boolean): WebhookFields | Refusal {
  const { description = null, isActive = true } = input;
  const empty: WebhookFields = {
    url: '',
    format: 'postrider',
    events: [],
    filter: null,
    name: '',
    description,
    isActive,
  };
  const fields = changedFields(empty, input, allowPrivateNetworks);
  return isRefusal(fields)
    ? fields
    : { ...fields, name: webhookName(input.name, fields.description, fields.url) };
}

/** Validates a patch and applies it. */
export function changedFields(
  current: WebhookFields,
  patch: WebhookPatch,
  allowPrivateNetworks: boolean,
): WebhookFields | Refusal {
  const url = patch.url === undefined ? current.url : webhookUrl(patch.url, allowPrivateNetworks);
  if (isRefusal(url)) return url;
  const format = patch.format ?? current.format;
  const kinds = patch.events === undefined ? current.events : webhookEvents(patch.events);
  const events = isRefusal(kinds) ? kinds : eventsIn(format, kinds);
  if (isRefusal(events)) return events;
  const filter = patch.filter === undefined ? current.filter : webhookFilter(patch.filter);
  if (isRefusal(filter)) return filter;
  return {
    url,
    format,
    events,
    filter,
    name: patch.name ?? current.name,
    description: patch.description === undefined ? current.description : patch.description || null,
    isActive: patch.isActive ?? current.isActive,
  };
}

/** Returns the URL unchanged except for surrounding blanks. Host names are resolved at each call only. */
export function webhookUrl(text: string, allowPrivateNetworks: boolean): string | Refusal {
  const url = text.trim();
  if (url.length > MAX_URL_LENGTH) return invalid('url', `must have at most ${MAX_URL_LENGTH} characters`);
  if (/[\s\p{Cc}]/u.test(url) || !URL.canParse(url))
    return invalid('url', 'must be a URL such as https://example.com/hooks');
  const { protocol, username, password, hostname } = new URL(url);
  if (protocol !== 'https:' && protocol !== 'http:')
    return invalid('url', 'must begin with https:// or http://');
  if (username !== '' || password !== '')
    return invalid(
      'url',
      'must not contain a user name or password; put a token into the path, or verify signatures',
    );
  const address = literalAddress(hostname);
  if (address !== null && !isCallable(address, allowPrivateNetworks))
    return invalid('url', `must not have the address ${address}, which may not be called`);
  return url;
}

/** Link-local and metadata addresses are never called; private ones only where the operator allows it. */
export function isCallable(address: string, allowPrivateNetworks: boolean): boolean {
  return !isForbidden(address) && (allowPrivateNetworks || isPublic(address));
}

/** Returns the kinds without duplicates; only `*` when it is among them. */
export function webhookEvents(input: string | readonly string[]): string[] | Refusal {
  const kinds = [...new Set(typeof input === 'string' ? [input] : input)];
  if (kinds.length === 0) return invalid('events', 'must contain at least one kind of event, or "*"');
  const unknown = kinds.findIndex((kind) => kind !== EVERY_EVENT && !isEventKind(kind));
  if (unknown !== -1) return invalid(`events[${unknown}]`, `must be "*" or one of ${EVENT_KINDS.join(', ')}`);
  return kinds.includes(EVERY_EVENT) ? [EVERY_EVENT] : kinds;
}

/** Returns the kinds that the format has a name for: a webhook gets, and shows, no others. */
function eventsIn(format: WebhookFormat, kinds: string[]): string[] | Refusal {
  if (format === 'postrider') return kinds;
  const named = (kinds.includes(EVERY_EVENT) ? EVENT_KINDS : kinds).filter((kind) => hasEvent(format, kind));
  return named.length > 0 ? named : invalid('events', `must contain an event that the format ${format} has`);
}

/** Returns the filter with domains as lower-case A-labels and without empty lists; null: it has none. */
function webhookFilter(filter: WebhookFilter | null): WebhookFilter | null | Refusal {
  const { domains: given = [], streams = [], tags = [] } = filter ?? {};
  const domains = given.map((name) => normalizeDomain(name));
  const wrong = domains.indexOf(null);
  if (wrong !== -1) return invalid(`filter.domains[${wrong}]`, 'must be a domain such as example.com');
  const named = domains.filter((name) => name !== null);
  if (named.length + streams.length + tags.length === 0) return null;
  return {
    ...(named.length === 0 ? {} : { domains: [...new Set(named)] }),
    ...(streams.length === 0 ? {} : { streams: [...new Set(streams)] }),
    ...(tags.length === 0 ? {} : { tags: [...new Set(tags)] }),
  };
}

const MAX_HEADERS = 10;
const MAX_HEADER_VALUE_LENGTH = 1000;

/** RFC 9110 §5.6.2 token; it begins with a letter or a digit. */
const HEADER_NAME = /^[a-z0-9][a-z0-9!#$%&'*+.^_`|~-]{0,99}$/i;

/** Printable ASCII without blanks at the ends. */
const HEADER_VALUE = /^[!-~](?:[ -~]*[!-~])?$/;

/**
 * Headers that this service sets, or that are of the connection (RFC 9110 §7.6.1). `Cookie` and `Authorization` are allowed:
 * gateways in front of endpoints require them.
 */
const OWN_HEADERS =
  /^(?:host|content-.*|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|user-agent|webhook-.*|svix-.*|x-twilio-.*)$/i;

/** Validates the headers that an account adds to calls. */
export function webhookHeaders(
  headers: Readonly<Record<string, string>> | null,
): Readonly<Record<string, string>> | Refusal {
  const entries = Object.entries(headers ?? {});
  if (entries.length > MAX_HEADERS) return invalid('headers', `must have at most ${MAX_HEADERS} headers`);
  const names = new Set<string>();
  for (const [name, value] of entries) {
    const problem = !HEADER_NAME.test(name)
      ? 'is not the name of a header'
      : OWN_HEADERS.test(name)
        ? 'cannot be set: this service sets it, or it is of the connection'
        : names.has(name.toLowerCase())
          ? 'is given twice'
          : value.length > MAX_HEADER_VALUE_LENGTH || !HEADER_VALUE.test(value)
            ? `must have 1 to ${MAX_HEADER_VALUE_LENGTH} printable ASCII characters without blanks at the ends`
            : null;
    if (problem !== null) return invalid(`headers.${name.slice(0, 100)}`, problem);
    names.add(name.toLowerCase());
  }
  return headers ?? {};
}

/** Returns the name; by default the description, else the host of the URL. */
export function webhookName(name: string | undefined, description: string | null, url: string): string {
  return (
    name ??
    (description === null ? new URL(url).host : Array.from(description).slice(0, MAX_NAME_LENGTH).join(''))
  );
}
