import { type Selection, selectedByChunk } from '../audience/segments/evaluate.ts';
import { HOUR } from '../core/clock.ts';
import type { AudienceCounts } from '../store/contacts/subscriptions.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';
import { readPrepared } from './campaigns.ts';

/* What the console shows of campaigns and of their audience in lists and before a send. */

/** A campaign in a list. */
export interface CampaignFigures {
  campaignId: string;
  /** Null: none is chosen yet. */
  subject: string | null;
  /** The name of the group; null: none is chosen yet, or it was deleted. */
  group: string | null;
  sent: number;
  delivered: number;
  /** Messages that a person opened; `clicked` likewise. */
  opened: number;
  clicked: number;
  /** Messages that were opened in each of the first hours. */
  openedByHour: number[];
}

const FIRST_HOURS = 24;
const NO_END = Number.MAX_SAFE_INTEGER;

/** Reads campaigns of an account in the order of their ids; those that do not exist are left out. */
export const campaignFigures = readQuery(
  'campaignFigures',
  (tables: Tables, { accountId, ids }: { accountId: string; ids: string[] }): CampaignFigures[] =>
    ids.flatMap((campaignId) => {
      const campaign = tables.campaigns.get(accountId, campaignId);
      if (campaign === null) return [];
      const send = tables.campaignSends.get(campaign.seq);
      const prepared = readPrepared(campaign.prepared);
      const groupId = send?.subscription_group_id ?? prepared?.subscriptionGroupId;
      const group = groupId === undefined ? null : tables.subscriptionGroups.get(accountId, groupId);
      const template =
        prepared?.templateId === undefined ? null : tables.templates.get(accountId, prepared.templateId);
      const subject =
        send === null
          ? (prepared?.subject ?? template?.subject ?? null)
          : tables.campaignSends.subject(campaign.seq);
      const { sent, delivered, uniqueOpened, uniqueClicked } = tables.campaignCounts.totals({
        campaignId,
        from: 0,
        to: NO_END,
      });
      const counted = { campaignId, subject, group: group?.name ?? null, sent, delivered };
      return [
        {
          ...counted,
          opened: uniqueOpened,
          clicked: uniqueClicked,
          openedByHour: openedByHour(tables, campaignId, send?.started_at ?? null),
        },
      ];
    }),
);

function openedByHour(tables: Tables, campaignId: string, startedAt: number | null): number[] {
  if (startedAt === null) return [];
  const from = startedAt - (startedAt % HOUR);
  const filter = { campaignId, from, to: from + FIRST_HOURS * HOUR };
  const counts = new Map(
    tables.campaignCounts.series(filter, HOUR).map(({ start, uniqueOpened }) => [start, uniqueOpened]),
  );
  return Array.from({ length: FIRST_HOURS }, (_, hour) => counts.get(from + hour * HOUR) ?? 0);
}

/** What becomes of the people of an audience when a campaign is sent to them now. */
export interface AudienceFigures {
  /** Active members of the groups that the segment and the exclusions select, or as many of them as were counted. */
  members: number;
  eligible: number;
  withoutEmail: number;
  /** Suppressed, or mail is paused. */
  suppressed: number;
  withoutConsent: number;
  /** Whether there are more members than were counted. */
  isPartial: boolean;
}

/** Members that are counted; each is read. */
const MAX_COUNTED = 200_000;

/** Counts the active members of a group; null: there is no such group. */
export const groupAudience = readQuery(
  'groupAudience',
  (tables: Tables, accountId: string, groupId: string): AudienceFigures | null => {
    const group = tables.subscriptionGroups.get(accountId, groupId);
    if (group === null) return null;
    const counts = tables.subscriptions.audience(group.seq, MAX_COUNTED);
    return figuresOf(counts, counts.members === MAX_COUNTED && group.active_subscribers > MAX_COUNTED);
  },
);

/** Counts the people of an audience that is more than a group. */
export const selectedAudience = readQuery(
  'selectedAudience',
  (tables: Tables, selection: Selection): AudienceFigures => {
    const sum = { members: 0, eligible: 0, withoutEmail: 0, suppressed: 0 };
    for (const seqs of selectedByChunk(tables, selection)) {
      if (sum.members >= MAX_COUNTED) return figuresOf(sum, true);
      const counts = tables.subscriptions.audienceAmong(seqs);
      sum.members += counts.members;
      sum.eligible += counts.eligible;
      sum.withoutEmail += counts.withoutEmail;
      sum.suppressed += counts.suppressed;
    }
    return figuresOf(sum, false);
  },
);

function figuresOf(counts: AudienceCounts, isPartial: boolean): AudienceFigures {
  const { members, eligible, withoutEmail, suppressed } = counts;
  return { ...counts, withoutConsent: members - eligible - withoutEmail - suppressed, isPartial };
}
