import { useEffect, useState } from 'preact/hooks';
import { ApiError, operate } from '../../api.ts';
import type { DataOf } from '../../operations.ts';
import type { CurrentMember } from '../../session.ts';

/** A resource that the server found for a text. */
export interface FoundResource {
  kind: 'event' | 'delivery' | 'template' | 'contact' | 'subject';
  /** Name or id of the resource. */
  name: string;
  /** Path of the resource's page. */
  path: string;
}

const DELAY_MS = 250;
/** Maximum number of results of each kind. */
const MAX_FOUND = 5;
/** The shortest name that is searched, in characters. */
const MIN_NAME = 3;
/** The time of an event differs from that in its id by at most this. */
const EVENT_SPAN_MS = 5000;
const MAX_EVENT_PAGES = 5;

/** Templates and contacts whose name has the text, or the resource of an id without a page, as the person types. */
export function useFoundResources({ accountId, may }: CurrentMember, text: string): FoundResource[] {
  const [found, setFound] = useState<{ of: string; resources: FoundResource[] }>({ of: '', resources: [] });
  useEffect(() => {
    if (accountId === '' || text.length < MIN_NAME) return undefined;
    const abort = new AbortController();
    const timer = window.setTimeout(() => {
      const request = { account: accountId, signal: abort.signal };
      const searches = text.startsWith('evt_')
        ? [eventOf(request, text)]
        : text.startsWith('whd_')
          ? [may('getWebhookDelivery') ? deliveryOf(request, text) : Promise.resolve([])]
          : [templatesOf(request, text), contactsOf(request, text), messagesOf(request, text)];
      void Promise.all(searches.map(withoutRefusal)).then((results) => {
        if (!abort.signal.aborted) setFound({ of: text, resources: results.flat() });
      });
    }, DELAY_MS);
    return () => {
      window.clearTimeout(timer);
      abort.abort();
    };
  }, [accountId, text]);
  return found.of === text ? found.resources : [];
}

/** What all requests of a search have. */
interface SearchRequest {
  account: string;
  signal: AbortSignal;
}

/** Without one of the searches, the others are shown. */
function withoutRefusal(search: Promise<FoundResource[]>): Promise<FoundResource[]> {
  return search.catch((error: unknown) => {
    if (error instanceof ApiError || (error instanceof DOMException && error.name === 'AbortError'))
      return [];
    throw error;
  });
}

async function templatesOf(request: SearchRequest, search: string): Promise<FoundResource[]> {
  const parameters = { search, limit: MAX_FOUND };
  const { templates } = await operate('get', '/web-setup/templates', { ...request, parameters });
  return templates.map(({ templateId, name }) => ({
    kind: 'template',
    name,
    path: `templates/${encodeURIComponent(templateId)}`,
  }));
}

/** Among the newest messages: a search by subject examines all of them. */
async function messagesOf(request: SearchRequest, subject: string): Promise<FoundResource[]> {
  const parameters = { subject, limit: MAX_FOUND };
  const { messages } = await operate('get', '/web-setup/messages', { ...request, parameters });
  return messages.map(({ messageId, subject: found, recipient }) => ({
    kind: 'subject',
    name: `${found} (${recipient})`,
    path: `messages/${encodeURIComponent(messageId)}`,
  }));
}

async function contactsOf(request: SearchRequest, search: string): Promise<FoundResource[]> {
  const parameters = { search, limit: MAX_FOUND };
  const { contacts } = await operate('get', '/web-setup/contacts', { ...request, parameters });
  return contacts.map(({ contactIdentifier, email, firstName, lastName }) => ({
    kind: 'contact',
    name: [firstName, lastName, email ?? contactIdentifier].filter(Boolean).join(' '),
    path: `contacts/${encodeURIComponent(contactIdentifier)}`,
  }));
}

type EventPage = DataOf<'/web-setup/events'>;

/** The page of the message or domain of an event. The id of an event has the time at which it was created. */
async function eventOf(request: SearchRequest, id: string): Promise<FoundResource[]> {
  const at = Number(/^evt_(\d{13})_\w+$/.exec(id)?.[1]);
  if (Number.isNaN(at)) return [];
  const from = new Date(at - EVENT_SPAN_MS).toISOString();
  const to = new Date(at + EVENT_SPAN_MS).toISOString();
  let lastKey: string | undefined;
  for (let page = 0; page < MAX_EVENT_PAGES; page++) {
    const parameters = { from, to, limit: 200, lastKey };
    const { events, nextKey }: EventPage = await operate('get', '/web-setup/events', {
      ...request,
      parameters,
    });
    const event = events.find(({ eventId }) => eventId === id);
    const messageId = event !== undefined && 'messageId' in event ? event.messageId : null;
    if (messageId) return [{ kind: 'event', name: id, path: `messages/${encodeURIComponent(messageId)}` }];
    if (event?.domainId !== undefined)
      return [{ kind: 'event', name: id, path: `domains/${encodeURIComponent(event.domainId)}` }];
    if (event !== undefined || nextKey === undefined || events.length === 0) return [];
    lastKey = nextKey;
  }
  return [];
}

/** The webhook of a delivery; one that was turned off has deliveries, too. */
async function deliveryOf(request: SearchRequest, id: string): Promise<FoundResource[]> {
  const { webhooks } = await operate('get', '/web-setup/webhooks', {
    ...request,
    parameters: { includeInactive: 'true' },
  });
  for (const { webhookId } of webhooks) {
    const isFound = await operate('get', '/web-setup/webhooks/{webhookId}/deliveries/{deliveryId}', {
      ...request,
      parameters: { webhookId, deliveryId: id },
    }).then(
      () => true,
      (error: unknown) => {
        if (error instanceof ApiError && error.status === 404) return false;
        throw error;
      },
    );
    if (isFound) return [{ kind: 'delivery', name: id, path: `webhooks/${encodeURIComponent(webhookId)}` }];
  }
  return [];
}
