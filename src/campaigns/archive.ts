import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { isPublicGroup } from '../audience/groups.ts';
import { MINUTE } from '../core/clock.ts';
import { inSlices, type Work, withoutPause } from '../core/concurrency/slices.ts';
import { isRefusal } from '../core/refusal.ts';
import { type ComplianceVariables, complianceVariables } from '../mail/compliance.ts';
import { withoutMarks, withoutPersonalLinksInSteps } from '../mail/html/personal-links.ts';
import type { LiquidPartials } from '../mail/liquid.ts';
import { copyOf, parseTemplateInSteps, renderTemplateInSteps, type TemplateKind } from '../mail/template.ts';
import { MAX_RENDERED } from '../sending/render/render.ts';
import { renderLiquidContent } from '../sending/render/render-liquid.ts';
import type { ArchivedCampaign, ArchivedSubject } from '../store/campaigns/archived-campaigns.ts';
import type { SubscriptionGroupRow } from '../store/contacts/subscription-groups.ts';
import type { Context } from '../store/context.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';
import { complianceTexts, type FooterOf } from '../templates/footer.ts';
import { isLiquid, type TemplateContent } from '../templates/liquid.ts';
import type { TemplateThreads } from '../templates/thread/threads.ts';
import { EMPTY_CONTACT } from './fields.ts';
import { type CampaignMail, mailOfVariant, storedMail } from './mail.ts';
import { decisionOf } from './variants.ts';

/*
 * The archive of a group: campaigns that were sent to all of its members, as a contact without values would receive them, without
 * links to pages of a recipient and without tracking. Campaigns to a segment of the group, or with exclusions, address some of the
 * members, and are not part of it; neither are cancelled ones. Of an A/B test the archive has the variant that was decided. The
 * content of a campaign never changes once it is sent, so that what was rendered stays in memory until others are shown; whether
 * it may be shown is looked up at each request.
 */

export const ARCHIVE_PAGE = 20;
/** Characters of the rendered campaigns that were shown last. */
const MAX_CACHED_CHARACTERS = 32 * 1024 * 1024;
const MAX_CACHED_SUBJECTS = 5000;
const MAX_SUBJECT = 1000;
/** Characters of the HTML in which the footer looks for the language of the mail. */
const MAX_HEAD = 2048;

/** The last part of the address of a group's archive; null: the group has none. */
export function archiveKeyOf(
  group: Pick<SubscriptionGroupRow, 'archive_key' | 'subscription_group_id' | 'is_public' | 'sign_up'>,
): string | null {
  return group.archive_key !== null && isPublicGroup(group) ? group.subscription_group_id : group.archive_key;
}

/** A campaign in the list of an archive. */
export interface ArchiveItem {
  campaignId: string;
  /** '' if it cannot be rendered. */
  subject: string;
  /** Epoch ms. */
  sentAt: number;
}

/** A campaign as the archive shows it. */
export interface ArchivedMail {
  subject: string;
  /** Null: a mail of text only. */
  html: string | null;
  text: string;
  /** Of the content. */
  digest: string;
}

interface RenderedMail {
  mail: ArchivedMail;
  from: string;
  footer: FooterOf;
  /** What the footer was rendered with. */
  service: ComplianceVariables;
}

/** Reads subjects, with their variables in braces. */
export const archivedSubjects = readQuery(
  'archivedSubjects',
  (tables: Tables, seqs: readonly number[]): ArchivedSubject[] => tables.archivedCampaigns.subjects(seqs),
);

interface StoredContent extends Pick<CampaignMail, 'from' | 'fromDomain' | 'wording'> {
  /** JSON. */
  variables: string;
}

/** Reads the mail of a campaign, of an A/B test that of its winner; null: it was deleted. */
export const archivedMail = readQuery('archivedMail', (tables: Tables, seq: number): StoredContent | null => {
  const send = tables.campaignSends.get(seq);
  if (send === null) return null;
  const { from, fromDomain, wording, variables } = mailOfVariant(
    storedMail(tables, send),
    decisionOf(send)?.variant ?? 0,
  );
  return { from, fromDomain, wording, variables: JSON.stringify(variables) };
});

/** Reads a page of an archive. */
export const archivedPage = readQuery(
  'archivedPage',
  (
    tables: Tables,
    accountId: string,
    groupId: string,
    before: ArchivedCampaign | null,
    limit: number,
  ): ArchivedCampaign[] => tables.archivedCampaigns.page(accountId, groupId, before, limit),
);

/** `threads` null: those that render Liquid have not started yet. */
export function createArchive(
  { tables, reader }: Pick<Context, 'tables' | 'reader'>,
  threads: () => TemplateThreads | null,
) {
  const subjects = new LRUCache<number, string>({ max: MAX_CACHED_SUBJECTS });
  const rendered = new LRUCache<number, RenderedMail>({
    maxSize: MAX_CACHED_CHARACTERS,
    sizeCalculation: ({ mail: { html, text } }) => 1000 + (html?.length ?? 0) + text.length,
  });

  /** Renders content for a contact without values; null: it cannot be rendered. */
  async function contentFor(
    accountId: string,
    content: TemplateContent,
    variables: Readonly<Record<string, unknown>>,
  ): Promise<TemplateContent | null> {
    if (!isLiquid(content)) return content;
    const running = threads();
    if (running === null) return null;
    const result = await renderLiquidContent(running, accountId, content, variables, () => true);
    return isRefusal(result) ? null : result;
  }

  async function subjectOf(accountId: string, row: ArchivedSubject): Promise<string> {
    const variables = variablesOf(row.variables);
    // Sound: `CampaignMail` has it.
    const liquid = row.liquid === null ? {} : { liquid: JSON.parse(row.liquid) as LiquidPartials };
    const wording = { subject: row.subject, html: '', text: null, ...liquid };
    const content = await contentFor(accountId, wording, variables);
    if (content === null) {
      // Whoever reads the list would render it again with each request.
      subjects.set(row.campaign_seq, '', { ttl: MINUTE });
      return '';
    }
    const subject = withoutPause(fill(content.subject, 'subject', isLiquid(wording), variables, {})) ?? '';
    const shown = copyOf(subject.slice(0, MAX_SUBJECT)).toWellFormed().trim();
    subjects.set(row.campaign_seq, shown);
    return shown;
  }

  function serviceOf(accountId: string, from: string, footer: FooterOf): ComplianceVariables {
    const account = tables.accounts.get(accountId);
    const { company_address } = complianceTexts(tables, accountId, footer, null);
    return complianceVariables({
      account: {
        companyName: account?.company_name ?? null,
        // Sound: the store contains what the schema of addresses accepted.
        companyAddress: JSON.parse(account?.company_address ?? 'null'),
      },
      from,
      templates: { unsubscribe: '', report_abuse: '', company_address },
    });
  }

  async function render(group: SubscriptionGroupRow, seq: number): Promise<RenderedMail | null> {
    const { account_id: accountId, subscription_group_id: groupId } = group;
    const stored = await reader.query(accountId, archivedMail, seq);
    if (stored === null) return null;
    const { from, fromDomain, wording } = stored;
    const variables = variablesOf(stored.variables);
    const footer = { fromDomain, groupId, html: copyOf(wording.html.slice(0, MAX_HEAD)) };
    const service = serviceOf(accountId, from.address, footer);
    const content = await contentFor(accountId, wording, variables);
    if (content === null) return null;
    const mail = await inSlices(pageOfMail(content, isLiquid(wording), variables, service), accountId);
    return mail === null ? null : { mail, from: from.address, footer, service };
  }

  return {
    /** The group with this archive, of an active account; null: there is none. */
    group: (key: string): SubscriptionGroupRow | null => {
      const group = tables.subscriptionGroups.ofArchive(key);
      return group !== null && tables.accounts.get(group.account_id)?.status === 'active' ? group : null;
    },
    /**
     * Campaigns before `before`, the newest first, and whether there are older ones. Null: the archive does not have the campaign
     * `before`.
     */
    list: async (
      { account_id: accountId, subscription_group_id: groupId }: SubscriptionGroupRow,
      before: string | null,
    ): Promise<{ items: ArchiveItem[]; hasMore: boolean } | null> => {
      const position = before === null ? null : tables.archivedCampaigns.get(accountId, groupId, before);
      if (before !== null && position === null) return null;
      const found = await reader.query(
        accountId,
        archivedPage,
        accountId,
        groupId,
        position,
        ARCHIVE_PAGE + 1,
      );
      const rows = found.slice(0, ARCHIVE_PAGE);
      const unknown = rows.filter(({ campaign_seq: seq }) => !subjects.has(seq));
      const named = new Map(rows.map(({ campaign_seq: seq }) => [seq, subjects.get(seq) ?? '']));
      if (unknown.length > 0) {
        const seqs = unknown.map(({ campaign_seq: seq }) => seq);
        for (const row of await reader.query(accountId, archivedSubjects, seqs))
          named.set(row.campaign_seq, await subjectOf(accountId, row));
      }
      const items = rows.map(({ campaign_seq: seq, campaign_id: campaignId, sent_at: sentAt }) => ({
        campaignId,
        subject: named.get(seq) ?? '',
        sentAt,
      }));
      return { items, hasMore: found.length > rows.length };
    },
    /** Looks up a campaign; null: the archive does not have it. */
    find: (
      { account_id: accountId, subscription_group_id: groupId }: SubscriptionGroupRow,
      campaignId: string,
    ): ArchivedCampaign | null => tables.archivedCampaigns.get(accountId, groupId, campaignId),
    /** Null: the campaign was deleted meanwhile, or cannot be rendered. */
    mail: async (
      group: SubscriptionGroupRow,
      { campaign_seq: seq }: ArchivedCampaign,
    ): Promise<ArchivedMail | null> => {
      const known = rendered.get(seq);
      if (known !== undefined) {
        // The campaign can be in the archives of several groups.
        const footer = { ...known.footer, groupId: group.subscription_group_id };
        if (serviceOf(group.account_id, known.from, footer) === known.service) return known.mail;
      }
      const current = await render(group, seq);
      if (current !== null) rendered.set(seq, current);
      return current?.mail ?? null;
    },
  };
}

export type Archive = ReturnType<typeof createArchive>;

/** Of the campaign, with a contact without values. `json`: the variables of a `CampaignMail`. */
function variablesOf(json: string): Record<string, unknown> {
  // Sound: only the variables of a request are stored.
  return { ...(JSON.parse(json) as Record<string, unknown>), ...EMPTY_CONTACT };
}

/** Renders one part; variables without a value are empty. Null: it cannot be rendered. */
function* fill(
  source: string,
  kind: TemplateKind,
  hasMarks: boolean,
  variables: Readonly<Record<string, unknown>>,
  service: Readonly<Record<string, string>>,
): Work<string | null> {
  const template = yield* parseTemplateInSteps(source, hasMarks ? 'marks' : 'variables');
  const options = { limit: MAX_RENDERED, optional: new Set(template.names) };
  const result = yield* renderTemplateInSteps(template, kind, variables, service, options);
  return typeof result === 'string' ? result : null;
}

function* pageOfMail(
  content: TemplateContent,
  hasMarks: boolean,
  variables: Readonly<Record<string, unknown>>,
  service: ComplianceVariables,
): Work<ArchivedMail | null> {
  const subject = yield* fill(content.subject, 'subject', hasMarks, variables, {});
  const isText = content.html === '';
  const source = isText ? (content.text ?? '') : content.html;
  const kind = isText ? 'text' : 'html';
  const part = yield* fill(source, kind, hasMarks, variables, service[kind]);
  if (subject === null || part === null) return null;
  yield;
  const html = isText ? null : yield* withoutPersonalLinksInSteps(part);
  const text = isText ? withoutMarks(part) : '';
  yield;
  const digest = createHash('sha256')
    .update(JSON.stringify([subject, html, text]))
    .digest('base64url')
    .slice(0, 22);
  return { subject, html, text, digest };
}
