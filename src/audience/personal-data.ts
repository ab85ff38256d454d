import { iso, isoOrNull } from '../core/clock.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import { withoutNulls } from '../core/without-nulls.ts';
import { presentEvent } from '../events/feed.ts';
import { presentMessage, presentTimeline } from '../events/message-view.ts';
import { isEmailIdentifier } from '../mail/identifier.ts';
import { MAX_CONSENT_ENTRIES } from '../store/contacts/consent.ts';
import { ENGAGEMENT_BITS, variantOfBits } from '../store/contacts/engagement.ts';
import type { ExportSection } from '../store/data-policies.ts';
import type { ListedMessage } from '../store/messages/messages.ts';
import type { Reader } from '../store/readers/reads.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';
import { doubleOptInOf } from './consent-proof.ts';
import { identifiersOf } from './people.ts';
import { presentConsent, presentContact, presentMembership } from './present.ts';

/*
 * All data about a person, for a request under articles 15 and 20 of the GDPR. The first page has everything but the
 * messages and the events without a message, which follow page by page: a person may have thousands. Where an address
 * is stored, and which section has it, is declared once (EXPORT_OF_TABLE in store/data-policies).
 */

/** Where a page ended: in the messages, newest first, or in the events of one of the identifiers, oldest first. */
export type PersonalDataPosition =
  | { part: 'messages'; before: number }
  | { part: 'events'; of: number; after: number };

export interface PersonalDataFilter {
  accountId: string;
  /** `email_<md5>` or `phone_<md5>`. */
  identifier: string;
  after: PersonalDataPosition | null;
  limit: number;
}

/** Parses `m<before>` or `e<of>-<after>`; null: it is no position. */
export function parsePosition(text: string): PersonalDataPosition | null {
  const [, messages, of, events] = /^(?:m(\d{1,15})|e([01])-(\d{1,15}))$/.exec(text) ?? [];
  if (messages !== undefined) return { part: 'messages', before: Number(messages) };
  return of === undefined ? null : { part: 'events', of: Number(of), after: Number(events) };
}

export function positionText(position: PersonalDataPosition): string {
  return position.part === 'messages' ? `m${position.before}` : `e${position.of}-${position.after}`;
}

/** A page as JSON; `next`: where the next one begins, null: this is the last one. Null: nothing is stored. */
export const personalDataPage = readQuery(
  'personalDataPage',
  (
    tables: Tables,
    filter: PersonalDataFilter,
    now: number,
  ): { json: string; next: PersonalDataPosition | null } | null => {
    const { accountId, identifier } = filter;
    const contact = tables.contacts.byIdentifier(accountId, identifier);
    const identifiers = contact === null ? [identifier] : identifiersOf(contact);
    const ofAll = <Row>(read: (each: string) => Row[]): Row[] => identifiers.flatMap(read);
    const page = pageOf(tables, identifiers, filter);
    const sections: Record<Exclude<ExportSection, 'messages' | 'events'>, () => unknown> = {
      contact: () => (contact === null ? null : presentContact(contact)),
      memberships: () =>
        contact === null
          ? []
          : tables.subscriptions.ofContact(contact.seq).map((row) => ({
              ...presentMembership(row),
              consentMethod: row.consent_method,
              consentDetails: row.consent_details,
              updatedAt: iso(row.updated_at),
            })),
      consents: () =>
        contact === null
          ? []
          : tables.consents.history(contact.seq, null, MAX_CONSENT_ENTRIES).map((row) => ({
              ...presentConsent(row),
              doubleOptIn: doubleOptInOf(tables, accountId, row),
            })),
      optOuts: () =>
        ofAll((each) => tables.personalData.optOutsOf(accountId, each)).map((row) => ({
          subscriptionGroupId: row.subscription_group_id,
          method: row.method,
          createdAt: iso(row.created_at),
        })),
      signUps: () =>
        ofAll((each) => tables.personalData.closedSignUpsOf(accountId, each)).map((row) => ({
          subscriptionGroupId: row.subscription_group_id === '' ? null : row.subscription_group_id,
          usedUntil: iso(row.until),
        })),
      suppressions: () =>
        ofAll((each) => tables.suppressions.of(accountId, each)).map((row) => ({
          contactIdentifier: row.recipient_hash,
          email: row.email,
          stream: row.stream,
          reason: row.reason,
          createdAt: iso(row.created_at),
        })),
      suppressionRemovals: () =>
        ofAll((each) => tables.suppressionRemovals.of(accountId, each)).map((row) => ({
          stream: row.stream,
          reason: row.reason,
          suppressedAt: iso(row.suppressed_at),
          note: row.note,
          removedBy: row.removed_by,
          removedAt: iso(row.removed_at),
        })),
      strikes: () =>
        ofAll((each) => tables.personalData.strikesOf(accountId, each)).map(({ kind, at }) => ({
          kind,
          at: iso(at),
        })),
      engagement: () => (contact === null ? null : engagementOf(tables, contact.seq)),
      sequences: () =>
        contact === null
          ? []
          : tables.sequencePeople.ofContact(contact.seq).map((row) => ({
              sequenceId: row.sequence_id,
              state: row.state,
              step: row.step,
              ...withoutNulls({ reason: row.reason }),
              // Sound: only events write them.
              properties: row.properties === null ? {} : (JSON.parse(row.properties) as object),
              enteredAt: iso(row.entered_at),
              endedAt: isoOrNull(row.ended_at),
            })),
      hygiene: () =>
        contact === null
          ? []
          : tables.hygiene.ofContact(contact.seq).map((row) => ({
              hygieneId: row.hygiene_id,
              kind: row.kind,
              ...withoutNulls({ detail: row.detail }),
              examinedAt: iso(row.created_at),
            })),
    };
    const first =
      filter.after === null
        ? Object.fromEntries(Object.entries(sections).map(([name, read]) => [name, read()]))
        : {};
    const isStored =
      contact !== null ||
      page.messages.length > 0 ||
      page.events.length > 0 ||
      Object.values(first).some((rows) => Array.isArray(rows) && rows.length > 0);
    if (filter.after === null && !isStored) return null;
    const { next, ...rows } = page;
    const data = { contactIdentifier: identifier, exportedAt: iso(now), ...first, ...rows };
    return { json: JSON.stringify(data), next };
  },
);

/** When the contact received, opened and clicked marketing mail, and which campaigns. */
function engagementOf({ engagement, personalData }: Tables, contactSeq: number) {
  const known = engagement.get(contactSeq);
  return {
    ...withoutNulls({
      receivedAt: isoOrNull(known?.received_at ?? null),
      openedAt: isoOrNull(known?.opened_at ?? null),
      clickedAt: isoOrNull(known?.clicked_at ?? null),
      unanswered: known?.unanswered ?? null,
      unansweredSince: isoOrNull(known?.unanswered_since ?? null),
      foundBySunsetRuleAt: isoOrNull(known?.sunset_at ?? null),
    }),
    campaigns: personalData.campaignsOf(contactSeq).map(({ campaign_id: campaignId, bits }) => ({
      campaignId,
      received: (bits & ENGAGEMENT_BITS.received) !== 0,
      opened: (bits & ENGAGEMENT_BITS.opened) !== 0,
      clicked: (bits & ENGAGEMENT_BITS.clicked) !== 0,
      // Of its A/B test, from 1.
      ...withoutNulls({ variant: variantNumber(bits) }),
    })),
  };
}

function variantNumber(bits: number): number | null {
  const variant = variantOfBits(bits);
  return variant === null ? null : variant + 1;
}

interface PageRows {
  messages: object[];
  events: object[];
  next: PersonalDataPosition | null;
}

/** The rows of a page: messages, then the events of each identifier. */
function pageOf(
  tables: Tables,
  identifiers: readonly string[],
  { accountId, after, limit }: PersonalDataFilter,
): PageRows {
  const firstEvents: PersonalDataPosition = { part: 'events', of: 0, after: 0 };
  if (after === null || after.part === 'messages') {
    // Mail is sent to addresses only.
    const address = identifiers.find(isEmailIdentifier);
    const found =
      address === undefined
        ? { rows: [], nextSeq: null }
        : tables.messages.list({
            accountId,
            recipientHash: address,
            limit,
            ...(after === null ? {} : { beforeSeq: after.before }),
          });
    const messages = found.rows.map((row) => messageWithHistory(tables, row));
    const next: PersonalDataPosition =
      found.nextSeq === null ? firstEvents : { part: 'messages', before: found.nextSeq };
    // Events are few: a page without further messages has the first of them, too.
    if (next.part === 'messages' || messages.length >= limit) return { messages, events: [], next };
    const rest = eventsOf(tables, accountId, identifiers, firstEvents, limit - messages.length);
    return { messages, ...rest };
  }
  return { messages: [], ...eventsOf(tables, accountId, identifiers, after, limit) };
}

function messageWithHistory(tables: Tables, message: ListedMessage): object {
  const events = tables.events.ofMessage(message.seq);
  const attempts = tables.messages.attemptsOf(message.seq);
  return {
    ...presentMessage(message),
    timeline: presentTimeline({ message, reason: null, events, attempts }),
  };
}

function eventsOf(
  tables: Tables,
  accountId: string,
  identifiers: readonly string[],
  { of, after }: Extract<PersonalDataPosition, { part: 'events' }>,
  limit: number,
): Pick<PageRows, 'events' | 'next'> {
  const identifier = identifiers[of];
  if (identifier === undefined) return { events: [], next: null };
  const rows = tables.personalData.eventsAbout(accountId, identifier, after, limit + 1);
  const shown = rows.slice(0, limit);
  const events = shown.map(presentEvent);
  const last = shown.at(-1);
  if (rows.length > limit && last !== undefined)
    return { events, next: { part: 'events', of, after: last.seq } };
  if (of + 1 >= identifiers.length) return { events, next: null };
  const next: Extract<PersonalDataPosition, { part: 'events' }> = { part: 'events', of: of + 1, after: 0 };
  if (events.length >= limit) return { events, next };
  const others = eventsOf(tables, accountId, identifiers, next, limit - events.length);
  return { events: [...events, ...others.events], next: others.next };
}

/** A page of the data about a person, as the API returns it. */
export interface PersonalDataPage {
  /** The sections of the first page. */
  data: Record<string, unknown>;
  messages: unknown[];
  events: unknown[];
  next: PersonalDataPosition | null;
}

/** Reads a page on a reader thread. Refused when nothing is stored about the person. */
export async function readPersonalData(
  reader: Reader,
  filter: PersonalDataFilter,
  now: number,
): Promise<PersonalDataPage | Refusal> {
  const page = await reader.query(filter.accountId, personalDataPage, filter, now);
  if (page === null)
    return refuse(
      'CONTACT_NOT_FOUND',
      `There is no contact ${filter.identifier}, and no message, event or suppression of this recipient`,
    );
  const { messages, events, ...data }: Record<string, unknown> & { messages: unknown[]; events: unknown[] } =
    JSON.parse(page.json);
  return { data, messages, events, next: page.next };
}
