import type { AccountLimits } from '../accounts/limits.ts';
import { mayReceiveMarketing } from '../audience/eligibility.ts';
import { type Clock, HOUR } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import type { Log } from '../core/log.ts';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import { countQueued } from '../events/campaign-counts.ts';
import { domainOf } from '../mail/address.ts';
import { hasRawVariables } from '../mail/compliance.ts';
import type { Mailbox } from '../mail/content.ts';
import type { OwnContent } from '../mail/shared-content.ts';
import { packContent } from '../mail/stored-content.ts';
import { isSimulated, type StoreSettings, storeMessage } from '../sending/draft.ts';
import type { HtmlReader } from '../sending/html-reader.ts';
import { fillWording, type OwnWording } from '../sending/render.ts';
import type { CampaignMember, CampaignSend } from '../store/campaigns/campaign-sends.ts';
import type { Tables } from '../store/tables.ts';
import { type CampaignContent, type SharedBody, stateOf } from './content.ts';
import { contactVariables, mailboxOf } from './fields.ts';
import { type ReadyCampaign, stillReady } from './mail.ts';

/**
 * The next portion of a campaign, in one unit of work: members behind the cursor are judged, their messages and
 * queue rows stored, the cursor and the counts moved. So wherever a crash comes, nobody is skipped and nobody is
 * written to twice.
 */
export interface BatchMeans extends StoreSettings {
  clock: Clock;
  ids: Ids;
  /** Says why a member's mail could not be rendered. */
  log: Log;
  html: HtmlReader;
  limits: Pick<AccountLimits, 'takeMessages' | 'allowance'>;
}

/** Every member has been dealt with. */
export function isThrough({ at_seq, last_seq }: CampaignSend): boolean {
  return last_seq !== null && at_seq >= last_seq;
}

/** Members looked at in a unit of work at most: how long everybody else waits for their turn, some 10 ms. */
export const BATCH = 25;
/**
 * A unit of work ends early after so many characters, one member at least: of what is rendered for each member, be it
 * stored or only checked.
 */
const BATCH_CHARACTERS = 256 * 1024;
/** What a mail that could not be written counts for: its values may have become long before. */
const UNWRITTEN = BATCH_CHARACTERS / 4;
/** What a hole of the shared text counts for, in characters. */
const HOLE = 8;
/** Batches of a paced campaign in an hour, at least: one every fifteen seconds. */
const PORTIONS_AN_HOUR = 240;

/**
 * Stores at most `room` messages, no more than the account's message limits allow, and returns where they go. A
 * refusal: nothing may be sent any more, and nothing was stored. Stores nothing either if `content`, which was prepared
 * ahead, is not what the campaign would be sent with now.
 */
export function queueBatch(
  tables: Tables,
  send: CampaignSend,
  room: number,
  content: CampaignContent | Refusal,
  means: BatchMeans,
): ReadonlySet<string> | Refusal {
  const ready = stillReady(tables, send, means.html, isRefusal(content) ? undefined : content.mail);
  if (isRefusal(ready)) return ready;
  if (isRefusal(content) || content.state !== stateOf(ready)) return NOWHERE;
  const pace = paceOf(send.per_hour);
  const allowed = means.limits.allowance(tables, send.account_id, means.clock.now()).left;
  const most = Math.min(room, pace.atOnce, allowed);
  const members = tables.campaignSends.members({
    groupSeq: ready.group.seq,
    after: send.at_seq,
    upTo: send.last_seq ?? 0,
    limit: BATCH,
  });
  const copier = copierOf(tables, send, ready, content, means);
  const after = { ...send };
  const destinations = new Set<string>();
  let counted = 0;
  let stopped = false;
  for (const member of members) {
    stopped = copier.work() >= BATCH_CHARACTERS || after.queued - send.queued >= most;
    if (stopped) break;
    after.at_seq = member.seq;
    const address = copier.store(member);
    if (typeof address !== 'string') {
      after[address.skipped]++;
      continue;
    }
    after.queued++;
    destinations.add(domainOf(address));
    if (!isSimulated(address, means)) counted++;
  }
  copier.finish();
  // There is nobody behind them.
  if (!stopped && members.length < BATCH) after.at_seq = send.last_seq ?? 0;
  const now = means.clock.now();
  after.next_at = now + Math.ceil((after.queued - send.queued) * pace.each);
  if (counted > 0) {
    const limited = means.limits.takeMessages(tables, send.account_id, counted, now);
    if (limited !== null) return limited;
  }
  tables.campaignSends.update(after);
  countQueued(tables, send.campaign_id, counted, now);
  return destinations;
}

const NOWHERE: ReadonlySet<string> = new Set();

/**
 * How many messages of a paced campaign go at once, and how long each makes the next ones wait, in ms. With n at
 * most at once and perHour - n + 1 in an hour between them, no hour however it is cut ever sees more than perHour.
 */
export function paceOf(perHour: number | null): { atOnce: number; each: number } {
  if (perHour === null) return { atOnce: Number.POSITIVE_INFINITY, each: 0 };
  const atOnce = Math.min(BATCH, Math.max(1, Math.floor(perHour / PORTIONS_AN_HOUR)));
  return { atOnce, each: HOUR / (perHour - atOnce + 1) };
}

type Skipped = { skipped: 'without_email' | 'not_eligible' | 'not_renderable' };

/** Makes the messages of one batch. */
function copierOf(
  tables: Tables,
  send: CampaignSend,
  { domain, prepared }: ReadyCampaign,
  { mail, shared }: CampaignContent,
  means: BatchMeans,
) {
  const optional = new Set(mail.optional);
  const now = means.clock.now();
  const holes = isRefusal(shared)
    ? 0
    : shared.wording.parts.reduce((n, { template }) => n + template.holes.length, 0);
  const html = isRefusal(shared) ? undefined : shared.wording.parts.find(({ field }) => field === 'html');
  // A raw variable makes the html be rendered and read for every member.
  const checked = prepared.parts.some(({ field, template }) => field === 'html' && hasRawVariables(template))
    ? 4 * Math.max(mail.wording.html.length, html?.template.length ?? 0)
    : 0;
  let work = 0;
  /** Of the row with what all copies have in common: there is one as soon as one copy is stored. */
  let sharedId: number | null = null;
  let stored = 0;

  function fill(member: CampaignMember): (OwnWording & SharedBody) | Refusal {
    if (isRefusal(shared)) return shared;
    const variables = { ...mail.variables, ...contactVariables(member) };
    const own = fillWording(shared.wording, variables, optional);
    return isRefusal(own) ? own : { ...own, ...shared };
  }

  /** Stores a member's own part, and the rest with the first one. */
  function storeContent(
    member: CampaignMember,
    { name }: Mailbox,
  ): { contentId: number; subject: string } | Refusal {
    work += checked + holes * HOLE;
    const filled = fill(member);
    if (isRefusal(filled)) {
      work += UNWRITTEN;
      return filled;
    }
    const { subject, values, packed, digest } = filled;
    sharedId ??= tables.sharedContents.findOrInsert({ campaignSeq: send.campaign_seq, digest }, packed, now);
    stored++;
    const own: OwnContent = { name, values };
    const { body, size } = packContent(JSON.stringify(own));
    work += size;
    const content = { body, size: size + packed.size, sharedId };
    return { contentId: tables.messages.insertContent(content, now), subject };
  }

  return {
    /** Characters read or written so far. */
    work: (): number => work,
    /** To be called when all are stored. */
    finish: (): void => {
      if (sharedId !== null) tables.sharedContents.addCopies(sharedId, stored);
    },
    /** The address it goes to, or why there is no message. */
    store: (member: CampaignMember): string | Skipped => {
      if (member.email === null || member.email_hash === null) return { skipped: 'without_email' };
      const { account_id, subscription_group_id } = send;
      if (mayReceiveMarketing(tables, account_id, member.email_hash, subscription_group_id) !== null)
        return { skipped: 'not_eligible' };
      const mailbox = mailboxOf(member, member.email);
      const content = storeContent(member, mailbox);
      if (isRefusal(content)) {
        const { message: reason } = content;
        means.log.info(
          { campaignId: send.campaign_id, member: member.seq, reason },
          'campaign member skipped',
        );
        return { skipped: 'not_renderable' };
      }
      const messageId = means.ids.make('msg');
      storeMessage(
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
          ...content,
          trackClicks: mail.trackClicks,
          trackOpens: mail.trackOpens,
          essential: false,
          now,
          dueAt: now,
        },
        means,
      );
      return member.email;
    },
  };
}
