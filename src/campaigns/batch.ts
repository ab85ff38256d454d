import { LRUCache } from 'lru-cache';
import type { AccountLimits } from '../accounts/limits.ts';
import { marketingIneligibility } from '../audience/eligibility.ts';
import { type Clock, HOUR } from '../core/clock.ts';
import { inSlices } from '../core/concurrency/slices.ts';
import type { Ids } from '../core/ids.ts';
import type { Log } from '../core/log.ts';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import { countCampaignQueued } from '../events/campaign-counts.ts';
import { domainOf } from '../mail/address.ts';
import { hidingVariable } from '../mail/compliance.ts';
import type { Mailbox } from '../mail/content.ts';
import type { OwnContent, SharedContent } from '../mail/shared-content.ts';
import { type PackedContent, packContent } from '../mail/stored-content.ts';
import {
  isSimulated,
  type StoreOptions,
  storeMessage,
  type TakeNew,
  type TakenMessage,
} from '../sending/draft.ts';
import { type PackedShared, packShared } from '../sending/encode-shared.ts';
import type { HtmlReader } from '../sending/render/html-reader.ts';
import { parsingContent } from '../sending/render/render.ts';
import {
  type CopyRendering,
  fillCopy,
  type SharedRendering,
  sharedParts,
  sharingPrepared,
} from '../sending/render/render-shared.ts';
import type { CampaignMember, CampaignSend } from '../store/campaigns/campaign-sends.ts';
import type { Tables } from '../store/tables.ts';
import { contactVariables, isContactField, mailboxOf } from './fields.ts';
import { type CampaignMail, type ReadyCampaign, recheckCampaign, storedMail } from './mail.ts';

/*
 * The next batch of a campaign in one unit of work: it checks the eligibility of the members after the cursor, stores
 * their messages and queue rows, and advances the cursor and the counts. After a crash no member is skipped and none
 * receives the campaign twice.
 */

export interface BatchDeps extends StoreOptions {
  clock: Clock;
  ids: Ids;
  log: Log;
  htmlReader: HtmlReader;
  limits: Pick<AccountLimits, 'takeMessages' | 'allowance'>;
  /** Default: every message waits in the queue. */
  take?: TakeNew;
}

/** Whether all members were processed. */
export function isComplete({ at_seq, last_seq }: CampaignSend): boolean {
  return last_seq !== null && at_seq >= last_seq;
}

/** Members in one unit of work: it takes some 10 ms, for which other work waits. */
export const MEMBER_BATCH_SIZE = 25;
/** A unit of work ends early after this number of characters, rendered or checked; it processes at least one member. */
const MAX_BATCH_CHARACTERS = 256 * 1024;
/** Characters for which a message that could not be rendered counts: its values can be long. */
const FAILED_RENDERING_CHARACTERS = MAX_BATCH_CHARACTERS / 4;
/** Characters for which a placeholder of the shared text counts. */
const PLACEHOLDER_CHARACTERS = 8;
/** Batches of a campaign with `perHour`, where that is neither fewer than one message nor more than a full batch each. */
const BATCHES_PER_HOUR = 240;

/**
 * Stores at most `capacity` messages within the account's message limits and returns the destinations of those that wait in
 * the queue. A refusal: the campaign can no longer be sent, and nothing was stored. Stores nothing if `content`, which was
 * prepared ahead, is outdated. Messages that `deps.take` takes are added to `taken`, also when an error is thrown afterwards.
 */
export function queueBatch(
  tables: Tables,
  send: CampaignSend,
  capacity: number,
  content: CampaignContent | Refusal,
  deps: BatchDeps,
  taken: TakenMessage[],
): ReadonlySet<string> | Refusal {
  const ready = recheckCampaign(tables, send, deps.htmlReader, isRefusal(content) ? undefined : content.mail);
  if (isRefusal(ready)) return ready;
  if (isRefusal(content) || content.state !== stateOf(ready)) return NO_DESTINATIONS;
  const now = deps.clock.now();
  const pace = paceOf(send.per_hour);
  const allowed = deps.limits.allowance(tables, send.account_id, now).left;
  const limit = Math.min(capacity, pace.batchSize, allowed);
  const members = tables.campaignSends.members({
    groupSeq: ready.group.seq,
    after: send.at_seq,
    upTo: send.last_seq ?? 0,
    limit: MEMBER_BATCH_SIZE,
  });
  const copier = createCopier(tables, send, ready, content, now, deps, taken);
  const after = { ...send };
  const destinations = new Set<string>();
  /** Not simulated: statistics count them. */
  let counted = 0;
  let stopped = false;
  for (const member of members) {
    stopped = copier.work() >= MAX_BATCH_CHARACTERS || after.queued - send.queued >= limit;
    if (stopped) break;
    after.at_seq = member.seq;
    const stored = copier.store(member);
    if ('skipped' in stored) {
      after[stored.skipped]++;
      continue;
    }
    const { address, isQueued } = stored;
    after.queued++;
    if (isQueued) destinations.add(domainOf(address));
    if (!isSimulated(address, deps)) counted++;
  }
  copier.finish();
  // There are no further members.
  if (!stopped && members.length < MEMBER_BATCH_SIZE) after.at_seq = send.last_seq ?? 0;
  if (isComplete(after)) countOthers(after);
  const queued = after.queued - send.queued;
  after.next_at = now + Math.ceil(queued * pace.intervalMs);
  if (queued > 0) {
    const limited = deps.limits.takeMessages(tables, send.account_id, queued, now);
    // Thrown, so that the unit of work is rolled back: the messages are stored already.
    if (limited !== null) throw new Error(`${limited.message}, although the allowance was not used up`);
  }
  tables.campaignSends.update(after);
  countCampaignQueued(tables, send.campaign_id, counted, now);
  return destinations;
}

/**
 * Counts the members who left the group or were erased before it was their turn as not eligible, and those who returned to
 * the group as members, so that the counts of a complete campaign add up.
 */
function countOthers(send: CampaignSend): void {
  const processed = send.queued + send.without_email + send.not_eligible + send.not_renderable;
  send.not_eligible += Math.max(0, (send.members ?? 0) - processed);
  send.members = Math.max(send.members ?? 0, processed);
}

const NO_DESTINATIONS: ReadonlySet<string> = new Set();

/**
 * The batch size of a campaign with `perHour`, and the interval for each message of a batch. With batches of n messages
 * and perHour - n + 1 intervals an hour, no period of an hour has more than perHour messages.
 */
export function paceOf(perHour: number | null): { batchSize: number; intervalMs: number } {
  if (perHour === null) return { batchSize: Number.POSITIVE_INFINITY, intervalMs: 0 };
  const batchSize = Math.min(MEMBER_BATCH_SIZE, Math.max(1, Math.floor(perHour / BATCHES_PER_HOUR)));
  return { batchSize, intervalMs: HOUR / (perHour - batchSize + 1) };
}

type Skipped = { skipped: 'without_email' | 'not_eligible' | 'not_renderable' };

/** Creates the messages of one batch. `now`: epoch ms. */
function createCopier(
  tables: Tables,
  send: CampaignSend,
  { domain, group, prepared }: ReadyCampaign,
  { mail, shared }: CampaignContent,
  now: number,
  deps: BatchDeps,
  taken: TakenMessage[],
) {
  const optional = new Set(mail.optional);
  const placeholders = isRefusal(shared)
    ? 0
    : shared.rendering.parts.reduce((n, { template }) => n + template.holes.length, 0);
  const html = isRefusal(shared) ? undefined : shared.rendering.parts.find(({ field }) => field === 'html');
  // With a variable that may hide the footer the HTML is rendered and parsed for each member.
  const rawHtmlCharacters = prepared.parts.some(
    ({ field, template }) => field === 'html' && hidingVariable(template) !== null,
  )
    ? 4 * Math.max(mail.wording.html.length, html?.template.length ?? 0)
    : 0;
  let work = 0;
  /** The row with the shared content, which is stored with the first copy. */
  let sharedId: number | null = null;
  let stored = 0;

  function fill(member: CampaignMember): (CopyRendering & SharedBody) | Refusal {
    if (isRefusal(shared)) return shared;
    const variables = { ...mail.variables, ...contactVariables(member) };
    const own = fillCopy(shared.rendering, variables, optional);
    return isRefusal(own) ? own : { ...own, ...shared };
  }

  /** Stores the part that differs for each member, and the shared content with the first one. */
  function storeContent(
    member: CampaignMember,
    { name }: Mailbox,
  ): { packed: PackedContent; contentId: number; subject: string } | Refusal {
    work += rawHtmlCharacters + placeholders * PLACEHOLDER_CHARACTERS;
    const filled = fill(member);
    if (isRefusal(filled)) {
      work += FAILED_RENDERING_CHARACTERS;
      return filled;
    }
    const { subject, values, packed, digest } = filled;
    sharedId ??= tables.sharedContents.findOrInsert(
      { campaignSeq: send.campaign_seq, digest, accountId: send.account_id },
      packed,
      now,
    );
    stored++;
    const own: OwnContent = { name, values };
    const { body, size } = packContent(JSON.stringify(own));
    work += size;
    const content = { body, size: size + packed.size, sharedId };
    return {
      packed: content,
      contentId: tables.messages.insertContent(content, now, send.account_id),
      subject,
    };
  }

  return {
    /** Characters read or written so far. */
    work: (): number => work,
    /** Call it after the last member. */
    finish: (): void => {
      if (sharedId !== null) tables.sharedContents.addCopies(sharedId, stored);
    },
    /** Returns the address of the message and whether it waits in the queue, or why there is none. */
    store: (member: CampaignMember): { address: string; isQueued: boolean } | Skipped => {
      if (member.email === null || member.email_hash === null) return { skipped: 'without_email' };
      const { account_id, subscription_group_id } = send;
      // `members` returns active ones.
      const permission = {
        consent_n: member.consent_n,
        group_is_active: group.is_active,
        member_is_active: 1,
      } as const;
      if (
        marketingIneligibility(tables, account_id, member.email_hash, subscription_group_id, permission) !==
        null
      )
        return { skipped: 'not_eligible' };
      const mailbox = mailboxOf(member, member.email);
      const content = storeContent(member, mailbox);
      if (isRefusal(content)) {
        const { message: reason } = content;
        deps.log.info(
          { campaignId: send.campaign_id, member: member.seq, reason },
          'campaign member skipped',
        );
        return { skipped: 'not_renderable' };
      }
      const messageId = deps.ids.make('msg');
      const { packed, contentId, subject } = content;
      const { take } = deps;
      const { isQueued } = storeMessage(
        tables,
        {
          accountId: account_id,
          useCase: 'mk',
          domainId: domain.domain_id,
          jobId: send.job_id,
          campaignId: send.campaign_id,
          campaignSeq: send.campaign_seq,
          groupId: subscription_group_id,
          from: mail.from.address,
          recipient: { mailbox, role: 'to' },
          messageId,
          contentId,
          contentBytes: packed.size,
          subject,
          trackClicks: mail.trackClicks,
          trackOpens: mail.trackOpens,
          essential: false,
          now,
          dueAt: now,
        },
        deps,
        take === undefined ? undefined : { take, content: packed, taken },
      );
      return { address: member.email, isQueued };
    },
  };
}

interface CampaignContent {
  mail: CampaignMail;
  /** Identifies the input from the account and the group. */
  state: string;
  /** A refusal: it cannot be rendered for any recipient. */
  shared: SharedBody | Refusal;
}

/** The shared content as it is rendered and as it is stored. */
interface SharedBody extends PackedShared {
  rendering: SharedRendering;
}

/** Characters of all cached campaigns, of their source and their rendering. */
const MAX_CACHED_CHARACTERS = 32 * 1024 * 1024;

/**
 * Prepares the shared content of a campaign's copies, ahead of the units of work that store the copies. It is parsed,
 * rendered and deflated once, and again only when its input changes. Begins with an empty cache by `campaign_seq`,
 * bounded by MAX_CACHED_CHARACTERS; the content that was used least recently is dropped. `prepare` works in turns of
 * the account.
 */
export function createCampaignContents(htmlReader: HtmlReader) {
  const cache = new LRUCache<number, CampaignContent>({
    maxSize: MAX_CACHED_CHARACTERS,
    sizeCalculation: sizeOf,
  });

  return {
    /** Resolves with the current content, or with a refusal when the campaign cannot be sent. */
    prepare: async (tables: Tables, send: CampaignSend): Promise<CampaignContent | Refusal> => {
      const known = cache.get(send.campaign_seq);
      const mail = known?.mail ?? storedMail(tables, send);
      await inSlices(parsingContent(mail.wording, htmlReader), send.account_id);
      const ready = recheckCampaign(tables, send, htmlReader, mail);
      if (isRefusal(ready)) return ready;
      const state = stateOf(ready);
      if (known?.state === state) return known;
      const rendering = await inSlices(
        sharingPrepared(ready.prepared, mail.variables, isContactField),
        send.account_id,
      );
      const content: CampaignContent = {
        mail,
        state,
        shared: isRefusal(rendering)
          ? rendering
          : { rendering, ...(await packCampaign(rendering, ready, mail, send.account_id)) },
      };
      cache.set(send.campaign_seq, content);
      return content;
    },
  };
}

/** Identifies the input of the copies that can change between two batches. Text values derive from those of html. */
function stateOf({ prepared, group }: ReadyCampaign): string {
  return JSON.stringify([prepared.service.html, group.subscription_group_id, group.name]);
}

function packCampaign(
  rendering: SharedRendering,
  { group }: ReadyCampaign,
  mail: CampaignMail,
  accountId: string,
): Promise<PackedShared> {
  const { from, fromDomain, replyTo } = mail;
  const list = { id: group.subscription_group_id, name: group.name };
  const content: SharedContent = { from, fromDomain, replyTo, list, ...sharedParts(rendering) };
  return packShared(content, accountId);
}

function sizeOf({ mail, state, shared }: CampaignContent): number {
  const { html, text } = mail.wording;
  const rendered = isRefusal(shared) ? 0 : shared.packed.size;
  return html.length + (text?.length ?? 0) + state.length + rendered + 1;
}
