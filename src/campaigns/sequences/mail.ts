import { findSubscriptionGroup } from '../../audience/groups.ts';
import {
  groupOf,
  type SequenceDefinition,
  type SequenceSend,
  type SequenceTrigger,
} from '../../audience/sequences/definition.ts';
import { inSlices } from '../../core/concurrency/slices.ts';
import { invalid, isRefusal, Refusal } from '../../core/refusal.ts';
import { formatMailbox } from '../../mail/address.ts';
import { checkDomain, type Sender } from '../../sending/checks.ts';
import type { HtmlReader } from '../../sending/render/html-reader.ts';
import {
  foreignSyntaxRefusal,
  misnamedRefusal,
  namesOf,
  parseContentInSteps,
  prepareTemplate,
  renderPreparedInSteps,
} from '../../sending/render/render.ts';
import { renderLiquidContent } from '../../sending/render/render-liquid.ts';
import { parseSend, type SendRequest } from '../../sending/request.ts';
import type { AccountRow } from '../../store/accounts.ts';
import type { KnownContact } from '../../store/contacts/contacts.ts';
import type { Tables } from '../../store/tables.ts';
import { isLiquid } from '../../templates/liquid.ts';
import { resolveTemplate } from '../../templates/templates.ts';
import type { TemplateThreads } from '../../templates/thread/threads.ts';
import { contactVariables, EMPTY_CONTACT, isContactField, isCustomField, mailboxOf } from '../fields.ts';

/* The messages of a sequence: ordinary sends of the marketing stream to one contact. */

/** Variables of a sequence that an event triggers: `{{event.<property>}}`. */
const EVENT = 'event';

/**
 * Who sends. `allowFrom`: From domains that the key of a request can use; empty, as for the messages of a sequence that
 * was accepted: all.
 */
export function senderOf(account: AccountRow, allowFrom: readonly string[] = []): Sender {
  return { account, useCase: 'mk', allowFrom, allowEssential: false };
}

/** Whether a variable is empty where a contact, or an event, has no value. */
export function isOptionalIn({ event }: SequenceTrigger): (name: string) => boolean {
  return (name) => isContactField(name) || (event !== undefined && name.startsWith(`${EVENT}.`));
}

/** The request that sends a step to a contact. `properties`: JSON of the event. */
export function requestFor(
  send: SequenceSend,
  trigger: SequenceTrigger,
  contact: KnownContact & { email: string },
  properties: string | null,
): SendRequest {
  return {
    ...send,
    to: formatMailbox(mailboxOf(contact, contact.email)),
    subscriptionGroupId: groupOf(trigger) ?? undefined,
    templateVariables: {
      ...contactVariables(contact),
      ...(trigger.event === undefined ? {} : { [EVENT]: JSON.parse(properties ?? '{}') }),
    },
  };
}

/** What the check of messages uses. */
export interface SequenceRenderer {
  htmlReader: HtmlReader;
  /** Reads what Liquid rendered. */
  marksReader: HtmlReader;
  threads: TemplateThreads;
}

/**
 * Checks everything that depends on no contact: the group, and the domain, the template and the compliance of each
 * message. A refusal has the step in its fields, such as `steps[1].send.from`.
 */
export async function checkMessages(
  tables: Tables,
  sender: Sender,
  { trigger, steps }: SequenceDefinition,
  renderer: SequenceRenderer,
  now: number,
): Promise<Refusal | null> {
  const groupId = groupOf(trigger);
  if (groupId !== null) {
    const group = findSubscriptionGroup(tables, sender.account.account_id, groupId);
    if (isRefusal(group)) return group;
    if (group.is_active !== 1) return invalid('trigger', 'names a subscription group that is inactive');
  }
  for (const [index, { send }] of steps.entries()) {
    if (send === undefined) continue;
    const refusal = await checkMessage(tables, sender, trigger, send, renderer, now);
    if (refusal !== null) return inStep(refusal, index);
  }
  return null;
}

async function checkMessage(
  tables: Tables,
  sender: Sender,
  trigger: SequenceTrigger,
  send: SequenceSend,
  { htmlReader, marksReader, threads }: SequenceRenderer,
  now: number,
): Promise<Refusal | null> {
  const { account } = sender;
  const variables = { ...EMPTY_CONTACT, ...(trigger.event === undefined ? {} : { [EVENT]: {} }) };
  const parsed = parseSend(
    { ...send, to: 'contact@example.com', subscriptionGroupId: groupOf(trigger) ?? undefined },
    now,
  );
  if (isRefusal(parsed)) return parsed;
  const domain = checkDomain(tables, sender, parsed);
  if (isRefusal(domain)) return domain;
  const source = resolveTemplate(tables, sender, parsed.source);
  if (isRefusal(source)) return source;
  const isOptional = isOptionalIn(trigger);
  const content = await renderLiquidContent(threads, account.account_id, source, variables, isOptional);
  if (isRefusal(content)) return content;
  const reader = isLiquid(source) ? marksReader : htmlReader;
  await inSlices(parseContentInSteps(content, reader), account.account_id);
  const prepared = prepareTemplate(tables, account, parsed, content, reader);
  if (isRefusal(prepared)) return prepared;
  const misread =
    foreignSyntaxRefusal(prepared.parts) ??
    misnamedRefusal(prepared.parts, (name) => Object.hasOwn(variables, name) || isCustomField(name));
  if (misread !== null) return misread;
  const optional = new Set(namesOf(prepared.parts).filter(isOptional));
  const tried = await inSlices(renderPreparedInSteps(prepared, variables, optional), account.account_id);
  return isRefusal(tried) ? tried : null;
}

function inStep({ code, message, extras }: Refusal, index: number): Refusal {
  const details = (extras.details ?? [{ field: '', message }]).map((detail) => ({
    ...detail,
    field: detail.field === '' ? `steps[${index}].send` : `steps[${index}].send.${detail.field}`,
  }));
  return new Refusal(code, `Step ${index + 1}: ${message}`, { ...extras, details });
}
