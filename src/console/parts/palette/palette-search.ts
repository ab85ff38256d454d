import { useEffect, useState } from 'preact/hooks';
import { ApiError, callApi, withQuery } from '../../api.ts';
import type { CurrentMember } from '../../session.ts';

/** A resource that the server found for a text. */
export interface FoundResource {
  kind: 'event' | 'delivery' | 'template' | 'contact' | 'subject';
  /** Name or id of the resource. */
  name: string;
  /** Path of the resource's page. */
  path: string;
}

interface ListedEvent {
  eventId: string;
  messageId?: string | null;
  domainId?: string;
}

const DELAY_MS = 250;
/** Maximum number of results of each kind. */
const MAX_FOUND = '5';
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
      const read = <T>(path: string) => callApi<T>(path, { account: accountId, signal: abort.signal });
      const searches = text.startsWith('evt_')
        ? [eventOf(read, text)]
        : text.startsWith('whd_')
          ? [may('getWebhookDelivery') ? deliveryOf(read, text) : Promise.resolve([])]
          : [templatesOf(read, text), contactsOf(read, text), messagesOf(read, text)];
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

type Read = <T>(path: string) => Promise<T>;

/** Without one of the searches, the others are shown. */
function withoutRefusal(search: Promise<FoundResource[]>): Promise<FoundResource[]> {
  return search.catch((error: unknown) => {
    if (error instanceof ApiError || (error instanceof DOMException && error.name === 'AbortError'))
      return [];
    throw error;
  });
}

async function templatesOf(read: Read, search: string): Promise<FoundResource[]> {
  const path = withQuery('/web-setup/templates', { search, limit: MAX_FOUND });
  const { templates } = await read<{ templates: { templateId: string; name: string }[] }>(path);
  return templates.map(({ templateId, name }) => ({
    kind: 'template',
    name,
    path: `templates/${encodeURIComponent(templateId)}`,
  }));
}

/** Among the newest messages: a search by subject examines all of them. */
async function messagesOf(read: Read, subject: string): Promise<FoundResource[]> {
  const path = withQuery('/web-setup/messages', { subject, limit: MAX_FOUND });
  const { messages } = await read<{
    messages: { messageId: string; subject: string; recipient: string }[];
  }>(path);
  return messages.map(({ messageId, subject: found, recipient }) => ({
    kind: 'subject',
    name: `${found} (${recipient})`,
    path: `messages/${encodeURIComponent(messageId)}`,
  }));
}

async function contactsOf(read: Read, search: string): Promise<FoundResource[]> {
  const path = withQuery('/web-setup/contacts', { search, limit: MAX_FOUND });
  const { contacts } = await read<{
    contacts: {
      contactIdentifier: string;
      email: string | null;
      firstName: string | null;
      lastName: string | null;
    }[];
  }>(path);
  return contacts.map(({ contactIdentifier, email, firstName, lastName }) => ({
    kind: 'contact',
    name: [firstName, lastName, email ?? contactIdentifier].filter(Boolean).join(' '),
    path: `contacts/${encodeURIComponent(contactIdentifier)}`,
  }));
}

/** The page of the message or domain of an event. The id of an event has the time at which it was created. */
async function eventOf(read: Read, id: string): Promise<FoundResource[]> {
  const at = Number(/^evt_(\d{13})_\w+$/.exec(id)?.[1]);
  if (Number.isNaN(at)) return [];
  const from = new Date(at - EVENT_SPAN_MS).toISOString();
  const to = new Date(at + EVENT_SPAN_MS).toISOString();
  let lastKey: string | undefined;
  for (let page = 0; page < MAX_EVENT_PAGES; page++) {
    const path = withQuery('/web-setup/events', { from, to, limit: '200', lastKey });
    const { events, nextKey } = await read<{ events: ListedEvent[]; nextKey?: string }>(path);
    const event = events.find(({ eventId }) => eventId === id);
    if (event?.messageId)
      return [{ kind: 'event', name: id, path: `messages/${encodeURIComponent(event.messageId)}` }];
    if (event?.domainId !== undefined)
      return [{ kind: 'event', name: id, path: `domains/${encodeURIComponent(event.domainId)}` }];
    if (event !== undefined || nextKey === undefined || events.length === 0) return [];
    lastKey = nextKey;
  }
  return [];
}

/** The webhook of a delivery; one that was turned off has deliveries, too. */
async function deliveryOf(read: Read, id: string): Promise<FoundResource[]> {
  const { webhooks } = await read<{ webhooks: { webhookId: string }[] }>(
    '/web-setup/webhooks?includeInactive=true',
  );
  for (const { webhookId } of webhooks) {
    const path = `/web-setup/webhooks/${encodeURIComponent(webhookId)}/deliveries/${encodeURIComponent(id)}`;
    const isFound = await read(path).then(
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
