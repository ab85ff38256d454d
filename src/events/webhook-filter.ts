import { domainOf } from '../mail/address.ts';
import type { Stream } from '../store/domains/domains.ts';
import type { EventRow } from '../store/messages/events.ts';
import { readLabels } from '../store/messages/labels.ts';
import type { Tables } from '../store/tables.ts';
import type { WebhookSelection } from '../store/webhooks.ts';

/** Which events of its kinds a webhook gets: those with one of the values of each list. */
export interface WebhookFilter {
  /** Names of domains: of the From address, or of the domain that the event is about. */
  domains?: string[] | undefined;
  streams?: FilteredStream[] | undefined;
  tags?: string[] | undefined;
}

export const FILTERED_STREAMS = ['transactional', 'marketing'] as const;
type FilteredStream = (typeof FILTERED_STREAMS)[number];

const NAMES: Record<Stream, FilteredStream> = { tx: 'transactional', mk: 'marketing' };

/** Whether a webhook gets an event of a kind to which it subscribes. Reads the event only where it decides that. */
export function isWanted(
  tables: Tables,
  { filter, format }: WebhookSelection,
  kind: string,
  eventSeq: number,
): boolean {
  const mayBeCancelled = format !== 'postrider' && kind === 'email_failed';
  if (filter === null && !mayBeCancelled) return true;
  const event = tables.events.bySeq(eventSeq);
  if (event === null || (mayBeCancelled && isCancelled(event))) return false;
  // Sound: only the webhooks module writes the column.
  return filter === null || passesFilter(tables, event, JSON.parse(filter) as WebhookFilter);
}

/** Whether an event passes the filter. An event without a domain, stream or tag does not pass a list of them. */
function passesFilter(tables: Tables, event: EventRow, filter: WebhookFilter): boolean {
  const { domain, stream, tags } = filteredOf(tables, event);
  return (
    (filter.domains === undefined || (domain !== null && filter.domains.includes(domain))) &&
    (filter.streams === undefined || (stream !== null && filter.streams.includes(NAMES[stream]))) &&
    (filter.tags === undefined || tags.some((tag) => filter.tags?.includes(tag)))
  );
}

/**
 * Whether an `email_failed` is that of a message that its account cancelled. In the formats of other providers it would be one
 * that bounced, so that webhooks with these formats do not get it.
 */
function isCancelled({ data }: Pick<EventRow, 'data'>): boolean {
  // Sound: only the recorder writes the fields.
  return (JSON.parse(data) as { reason?: string }).reason === 'cancelled';
}

interface Filtered {
  domain: string | null;
  stream: Stream | null;
  tags: readonly string[];
}

function filteredOf(tables: Tables, event: EventRow): Filtered {
  const { message_id, from_address, use_case, labels } = event;
  if (message_id !== null)
    return {
      domain: from_address === null ? null : domainOf(from_address),
      stream: use_case,
      tags: readLabels(labels).tags ?? [],
    };
  // Sound: only the recorder writes the fields. Those of an event without a message have what the message would have.
  const own = JSON.parse(event.data) as {
    domain?: string;
    from?: string;
    useCase?: Stream;
    tags?: readonly string[];
  };
  const row = event.domain_id === null ? null : tables.domains.byId(event.domain_id);
  return {
    domain: row?.name ?? own.domain ?? (own.from === undefined ? null : domainOf(own.from)),
    stream: own.useCase ?? row?.use_case ?? null,
    tags: own.tags ?? [],
  };
}
