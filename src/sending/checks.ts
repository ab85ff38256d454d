import type { KeyRights } from '../accounts/keys.ts';
import { marketingIneligibility } from '../audience/eligibility.ts';
import { iso } from '../core/clock.ts';
import type { Work } from '../core/concurrency/slices.ts';
import { isRefusal, type Refusal, refuse, type SubscriptionStatus } from '../core/refusal.ts';
import type { EventFields, Obstacle } from '../events/event-types.ts';
import { domainOf } from '../mail/address.ts';
import {
  type ComplianceVariables,
  missingInText,
  type RequiredVariable,
  requiredVariables,
} from '../mail/compliance.ts';
import type { MailingList } from '../mail/content.ts';
import { walkHtmlInSteps } from '../mail/html/walk.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import type { AccountRow } from '../store/accounts.ts';
import type { DomainRow, Stream } from '../store/domains/domains.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import {
  isRecipientDetail,
  type RecipientDetail,
  suppressedFor,
  suppressionDetail,
} from '../suppression/suppression.ts';
import type { TemplateContent } from '../templates/templates.ts';
import type { HtmlReader } from './render/html-reader.ts';
import {
  foreignSyntaxRefusal,
  hasFooter,
  leftoverWarnings,
  misnamedRefusal,
  namesOf,
  type PreparedTemplate,
  prepareIn,
  prepareTemplateInSteps,
  type Rendered,
  renderPreparedInSteps,
} from './render/render.ts';
import {
  NOT_REPEATED,
  type RepeatedCandidate,
  type RepeatedTemplates,
  renderRepeatedInSteps,
} from './render/render-shared.ts';
import type { ParsedSend, Recipient } from './request.ts';

/*
 * The checks of a send, in this order: From domain, compliance, variables, suppression, and consent for marketing mail.
 * They only read.
 */

/** Who sends, and what the API key permits. */
export interface Sender {
  account: AccountRow;
  useCase: Stream;
  /** From domains that the API key can use; empty: all. */
  allowFrom: readonly string[];
  /** The API key can send essential mail. */
  allowEssential: boolean;
  /** The API key is a test key: the messages are simulated, whoever their recipients are. Default: false. */
  isSimulation?: boolean;
  /**
   * A test message to a person who uses the console: in the marketing stream it needs neither contact nor consent, and ignores
   * an opt-out. Only `sending/test-messages` sets it.
   */
  isTest?: boolean;
}

/** A recipient that is skipped, and why. */
export type SkippedRecipient = Recipient & Pick<RecipientDetail, 'code' | 'reason'>;

/**
 * Divides the recipients of a send into those that get it and those that are refused. When all are refused, none is skipped:
 * the checks refuse the send.
 */
export function divideRecipients(
  tables: Tables,
  sender: Sender,
  send: ParsedSend,
  simulatorDomain: string,
): { send: ParsedSend; skipped: SkippedRecipient[]; refusal: Refusal | null } {
  const nobody = { send, skipped: [], refusal: null };
  const refusal = checkRecipients(tables, sender, send, simulatorDomain);
  if (refusal === null) return nobody;
  const details = new Map(
    (refusal.extras.details ?? []).filter(isRecipientDetail).map((detail) => [detail.recipient, detail]),
  );
  const recipients: Recipient[] = [];
  const skipped: SkippedRecipient[] = [];
  for (const recipient of send.recipients) {
    const detail = details.get(recipient.mailbox.address);
    if (detail === undefined) recipients.push(recipient);
    else skipped.push({ ...recipient, code: detail.code, reason: detail.reason });
  }
  return recipients.length === 0 ? nobody : { send: { ...send, recipients }, skipped, refusal };
}

function checkRecipients(
  tables: Tables,
  sender: Sender,
  send: ParsedSend,
  simulatorDomain: string,
): Refusal | null {
  return sender.useCase === 'mk' && sender.isTest !== true
    ? checkConsent(tables, sender, send, simulatorDomain)
    : checkSuppression(tables, sender, {
        recipients: send.recipients,
        essential: isExempt(sender, send),
      });
}

/** The sender of a request with an API key. */
export function senderOf(
  account: AccountRow,
  { allowFrom, allowEssential, livemode }: Pick<KeyRights, 'allowFrom' | 'allowEssential' | 'livemode'>,
  useCase: Stream,
): Sender {
  return { account, useCase, allowFrom, allowEssential, isSimulation: !livemode };
}

export interface Checked {
  domain: DomainRow;
  /** For the first recipient. */
  rendered: Rendered;
  /** For recipients with another language whose mail is separate. */
  inOtherLanguages: ReadonlyMap<Recipient, Rendered>;
  list: MailingList | null;
  /** The template was sent before: its texts can be prepared for further messages. */
  candidate: RepeatedCandidate | null;
  /** Sentences about text in braces that is sent unchanged. */
  warnings: string[];
}

/** Checks and renders a send, in steps. `content`: the resolved template; a refusal if it cannot be rendered. */
export function* checkSendInSteps(
  tables: Tables,
  sender: Sender,
  send: ParsedSend,
  content: TemplateContent | Refusal,
  options: SendCheckOptions,
): Work<Checked | Refusal> {
  const domain = checkDomain(tables, sender, send);
  if (isRefusal(domain)) return domain;
  if (send.essential && !sender.allowEssential) return essentialNotAllowed();
  if (isRefusal(content)) return content;
  const complete = options.appendFooter
    ? yield* appendFooterInSteps(content, requiredVariables(send), options.htmlReader)
    : content;
  const anyone = yield* prepareTemplateInSteps(tables, sender.account, send, complete, options.htmlReader);
  if (isRefusal(anyone)) return anyone;
  const [prepared = anyone, ...others] = preparedFor(tables, sender, send, complete, anyone);
  if (!options.literalBraces) {
    const misread =
      (sender.useCase === 'mk' ? foreignSyntaxRefusal(prepared.parts) : null) ??
      misnamedRefusal(prepared.parts, (name) => Object.hasOwn(send.variables, name));
    if (misread !== null) return misread;
  }
  const { ready, candidate } = maySplit(sender, send, options)
    ? options.repeated.find(prepared, scopeOf(send, domain))
    : NOT_REPEATED;
  const filled = ready === null ? null : yield* renderRepeatedInSteps(ready, prepared, send.variables);
  const { isOptional } = options;
  const optional = isOptional === undefined ? undefined : new Set(namesOf(prepared.parts).filter(isOptional));
  const rendered = filled ?? (yield* renderPreparedInSteps(prepared, send.variables, optional));
  if (isRefusal(rendered)) return rendered;
  const inOtherLanguages = yield* renderOthersInSteps(send, [prepared, ...others], optional);
  if (isRefusal(inOtherLanguages)) return inOtherLanguages;
  const refusal = checkRecipients(tables, sender, send, options.simulatorDomain);
  if (refusal !== null) return refusal;
  const warnings = options.literalBraces ? [] : leftoverWarnings(prepared.parts);
  return { domain, rendered, inOtherLanguages, list: listOf(tables, sender, send), candidate, warnings };
}

/**
 * The template for each recipient of marketing mail, with the footer in the language of the contact; transactional copies share
 * one content, which has the language of the first recipient. Empty: nothing in it has a language.
 */
function preparedFor(
  tables: Tables,
  { account, useCase }: Sender,
  send: ParsedSend,
  content: TemplateContent,
  prepared: PreparedTemplate,
): PreparedTemplate[] {
  if (!hasFooter(prepared)) return [];
  const recipients = useCase === 'mk' ? send.recipients : send.recipients.slice(0, 1);
  return recipients.map(({ mailbox: { address } }) => {
    const language = tables.contacts.languageOf(account.account_id, emailIdentifier(address));
    return prepareIn(tables, account, send, content, prepared, language);
  });
}

/** Renders a template once for each language that is not that of the first recipient. */
function* renderOthersInSteps(
  { recipients, variables }: ParsedSend,
  [first, ...others]: readonly PreparedTemplate[],
  optional: ReadonlySet<string> | undefined,
): Work<ReadonlyMap<Recipient, Rendered> | Refusal> {
  const byService = new Map<ComplianceVariables, Rendered>();
  const found = new Map<Recipient, Rendered>();
  for (const [index, prepared] of others.entries()) {
    const recipient = recipients[index + 1];
    if (recipient === undefined || prepared.service === first?.service) continue;
    const rendered =
      byService.get(prepared.service) ?? (yield* renderPreparedInSteps(prepared, variables, optional));
    if (isRefusal(rendered)) return rendered;
    byService.set(prepared.service, rendered);
    found.set(recipient, rendered);
  }
  return found;
}

/**
 * Whether the texts can be stored separately from the rest. Only of messages to one recipient: an erasure of one of several
 * rewrites their content.
 */
function maySplit({ useCase }: Sender, send: ParsedSend, options: SendCheckOptions): boolean {
  const { recipients, attachments, alternatives } = send;
  return (
    useCase === 'tx' &&
    !options.appendFooter &&
    // Rendered for its recipient: no other message has the same text.
    options.htmlReader.syntax !== 'marks' &&
    recipients.length === 1 &&
    attachments.length === 0 &&
    alternatives.length === 0
  );
}

/** Texts are prepared for the links of one domain, with the same tracking. */
function scopeOf({ trackClicks, trackOpens }: ParsedSend, { account_id, domain_id }: DomainRow): string {
  return JSON.stringify([account_id, domain_id, trackClicks, trackOpens]);
}

/** What a check needs in addition to the tables. */
export interface SendCheckOptions {
  htmlReader: HtmlReader;
  repeated: RepeatedTemplates;
  /** Append compliance variables that the content lacks instead of refusing it. */
  appendFooter: boolean;
  /** Braces are text, except those of the service's variables. */
  literalBraces: boolean;
  /** Simulated recipients need no consent. */
  simulatorDomain: string;
  /** Names of variables that are empty without a value; default: none. */
  isOptional?: ((name: string) => boolean) | undefined;
}

/** The mailing list of the message: its group, else its campaign, whose name is not disclosed to recipients. */
function listOf(
  tables: Tables,
  { account }: Sender,
  { groupId, campaignId }: Pick<ParsedSend, 'groupId' | 'campaignId'>,
): MailingList | null {
  if (groupId === null) return campaignId === null ? null : { id: campaignId, name: '' };
  return { id: groupId, name: tables.subscriptionGroups.get(account.account_id, groupId)?.name ?? '' };
}

const STREAM_NAMES: Record<Stream, string> = { tx: 'transactional', mk: 'marketing' };

/** Requires that the From domain is registered and verified for this stream, and that the API key can use it. */
export function checkDomain(
  tables: Tables,
  sender: Sender,
  { fromDomain: name }: Pick<ParsedSend, 'fromDomain'>,
): DomainRow | Refusal {
  const field = (message: string) => ({ details: [{ field: 'from', message }] });
  const registered = tables.domains.named(sender.account.account_id, name);
  if (registered.length === 0) {
    return refuse(
      'DOMAIN_NOT_REGISTERED',
      `The domain ${name} is not registered in this account`,
      field(`${name} is not registered`),
    );
  }
  const verified = registered.filter(({ status }) => status === 'SUCCESS' || status === 'TEMPORARY_FAILURE');
  if (verified.length === 0) {
    return refuse(
      'DOMAIN_NOT_VERIFIED',
      `The domain ${name} is not verified yet: publish its DNS records and verify it`,
      field(`${name} is not verified`),
    );
  }
  const matching = verified.find(({ use_case }) => use_case === sender.useCase);
  if (matching === undefined) {
    const stream = STREAM_NAMES[sender.useCase];
    if (registered.some(({ use_case }) => use_case === sender.useCase)) {
      return refuse(
        'DOMAIN_NOT_VERIFIED',
        `The domain ${name} is not verified yet for ${stream} mail: publish its DNS records and verify it`,
        field(`${name} is not verified for ${stream} mail`),
      );
    }
    return refuse(
      'USE_CASE_MISMATCH',
      `The domain ${name} is not registered for ${stream} mail`,
      field(`${name} is not registered for ${stream} mail`),
    );
  }
  if (sender.allowFrom.length > 0 && !sender.allowFrom.includes(name)) {
    return refuse(
      'KEY_NOT_ALLOWED',
      `This API key cannot send from ${name}`,
      field(`the key is restricted to ${sender.allowFrom.join(', ')}`),
    );
  }
  return matching;
}

/** Whether a message ignores opt-outs, and in the marketing stream a lack of consent: when it is accepted, and when it is sent. */
export function isExempt({ useCase, isTest }: Sender, { essential }: Pick<ParsedSend, 'essential'>): boolean {
  return essential || (useCase === 'mk' && isTest === true);
}

function essentialNotAllowed(): Refusal {
  return refuse('KEY_NOT_ALLOWED', 'This API key cannot send essential mail', {
    details: [{ field: 'essential', message: 'the key was created with --no-essential' }],
  });
}

/** Requires that no recipient is suppressed. */
export function checkSuppression(
  tables: Tables,
  sender: Sender,
  send: Pick<ParsedSend, 'recipients' | 'essential'>,
): Refusal | null {
  return refuseRecipients(send, (address, role) => {
    const found = suppressedFor(tables, sender.account.account_id, emailIdentifier(address), {
      useCase: sender.useCase,
      essential: send.essential,
    });
    return found === null ? null : { status: found.status, detail: suppressionDetail(role, address, found) };
  });
}

/**
 * For marketing mail: requires that no recipient is suppressed and that all have consented, to the group if one is given.
 */
export function checkConsent(
  tables: Tables,
  sender: Sender,
  send: ParsedSend,
  simulatorDomain: string,
): Refusal | null {
  return refuseRecipients(send, (address, role) => {
    if (domainOf(address) === simulatorDomain) return null;
    const { account_id } = sender.account;
    const found = marketingIneligibility(tables, account_id, emailIdentifier(address), send.groupId);
    if (found === null) return null;
    const { code, message, reason, since, status } = found;
    const detail = {
      field: role,
      message: `${address}: ${message}`,
      code,
      recipient: address,
      reason,
    };
    return { status, detail: since === undefined ? detail : { ...detail, since: iso(since) } };
  });
}

interface RefusedRecipient {
  status: SubscriptionStatus;
  detail: RecipientDetail;
}

/** One refused recipient refuses the request. The details list all of them; the code is that of the first. */
function refuseRecipients(
  send: Pick<ParsedSend, 'recipients'>,
  check: (address: string, role: string) => RefusedRecipient | null,
): Refusal | null {
  const refused = send.recipients.flatMap(({ mailbox, role }) => check(mailbox.address, role) ?? []);
  const [first] = refused;
  if (first === undefined) return null;
  const details = refused.map(({ detail }) => detail);
  const sentence = details.map(({ message }) => message).join('; ');
  return refuse(first.detail.code, sentence, { details, subscriptionStatus: first.status });
}

/**
 * Appends the compliance variables that a submitted message lacks, each on its own line: programs that only use SMTP (a
 * shop, a printer) do not know them. In steps, because HTML can be megabytes of tags.
 */
function* appendFooterInSteps(
  content: TemplateContent,
  required: readonly RequiredVariable[],
  reader: HtmlReader,
): Work<TemplateContent> {
  const inHtml = content.html === '' ? [] : (yield* reader.reading(content.html)).missing;
  const inText = missingInText(content.text === null ? NO_NAMES : yield* reader.readingText(content.text));
  const selectRequired = (missing: readonly RequiredVariable[]) =>
    required.filter((name) => missing.includes(name));
  if (content.html === '')
    return { ...content, text: withTextFooter(content.text ?? '', selectRequired(inText)) };
  // Html with all variables suffices, whatever the text contains.
  if (selectRequired(inHtml).length === 0) return content;
  return {
    ...content,
    html: yield* withHtmlFooter(content.html, selectRequired(inHtml)),
    text: content.text === null ? null : withTextFooter(content.text, selectRequired(inText)),
  };
}

const NO_NAMES = { names: [] };

function* withHtmlFooter(html: string, names: readonly RequiredVariable[]): Work<string> {
  const at = yield* findEndInSteps(html);
  const footer = names.map((name) => `<p>{{${name}}}</p>`).join('\n');
  return `${html.slice(0, at)}\n${footer}\n${html.slice(at)}`;
}

/** The position before the end of the body, where there is one. */
function* findEndInSteps(html: string): Work<number> {
  const ends = new Map<string, number>();
  yield* walkHtmlInSteps(html, { close: (name, start) => void ends.set(name, start) });
  return ends.get('body') ?? ends.get('html') ?? html.length;
}

function withTextFooter(text: string, names: readonly RequiredVariable[]): string {
  if (names.length === 0) return text;
  return [text.trimEnd(), ...names.map((name) => `{{${name}}}`)].join('\n\n').trimStart().concat('\n');
}

/** Repeats the checks of the acceptance. Returns null if the message can be sent. */
export function sendingObstacle(tables: Tables, message: MessageRow): Obstacle | null {
  const campaign = campaignObstacle(tables, message);
  if (campaign !== null) return campaign;
  const stop = tables.domains.sendingStop(message.domain_id);
  if (stop !== null) return { kind: 'hold_until_expiry', reason: stop };
  if (message.simulated === 1) return null;
  if (message.use_case === 'mk' && message.essential === 0) {
    const { account_id, recipient_hash, subscription_group_id } = message;
    const ended = marketingIneligibility(tables, account_id, recipient_hash, subscription_group_id);
    return ended === null ? null : suppressed({ reasonCode: 'CONSENT_WITHDRAWN', reason: ended.status });
  }
  const found = suppressedFor(tables, message.account_id, message.recipient_hash, {
    useCase: message.use_case,
    essential: message.essential === 1,
  });
  return found === null ? null : suppressed({ reasonCode: found.code, reason: found.row.reason });
}

/** A message of a campaign that is sent to a group depends on the state of the campaign. */
function campaignObstacle(tables: Tables, { campaign_id, job_id }: MessageRow): Obstacle | null {
  if (campaign_id === null || job_id === null) return null;
  const status = tables.campaignSends.statusOfJob(job_id);
  if (status === 'paused') return { kind: 'hold' };
  return status === 'cancelled' ? { kind: 'email_failed', fields: { reason: 'cancelled' } } : null;
}

function suppressed(fields: EventFields['email_suppressed']): Obstacle {
  return { kind: 'email_suppressed', fields };
}
