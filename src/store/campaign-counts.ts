import type { Database } from './database.ts';

/**
 * What happened to a campaign's mail, counted by hour as it happens. Reading them costs the same for a
 * hundred messages and for a million. Nothing is counted for a campaign that is gone.
 */
export const CAMPAIGN_COUNTS = [
  'queued',
  'sent',
  'delivered',
  'deferred',
  'bounced',
  'complained',
  'opened',
  'uniqueOpened',
  'clicked',
  'uniqueClicked',
  'unsubscribed',
  'failed',
] as const;
export type CampaignCount = (typeof CAMPAIGN_COUNTS)[number];

export interface CountFilter {
  campaignId: string;
  /** Hours that begin at or after, before; epoch ms. */
  from: number;
  to: number;
}

export interface CountedSpan {
  /** Epoch ms. */
  start: number;
  name: CampaignCount;
  count: number;
}

export interface LinkClicks {
  url: string;
  clicks: number;
}

/**
 * Addresses counted for each campaign: with more, its links are made for one recipient each, and a ranking
 * of them would say nothing.
 */
const MAX_LINKS = 1000;

export function campaignCountTable(db: Database) {
  const add = db.prepare<[number, CampaignCount, number, string]>(`
    INSERT INTO campaign_counts (campaign_id, hour, name, count)
    SELECT campaign_id, ?, ?, ? FROM campaigns WHERE campaign_id = ?
    ON CONFLICT DO UPDATE SET count = count + excluded.count`);
  const totals = db.prepare<CountFilter, Omit<CountedSpan, 'start'>>(`
    SELECT name, sum(count) AS count FROM campaign_counts
    WHERE campaign_id = @campaignId AND hour >= @from AND hour < @to GROUP BY name`);
  const series = db.prepare<CountFilter & { width: number }, CountedSpan>(`
    SELECT hour - hour % @width AS start, name, sum(count) AS count FROM campaign_counts
    WHERE campaign_id = @campaignId AND hour >= @from AND hour < @to GROUP BY start, name ORDER BY start`);
  const again = db.prepare<[string, string]>(
    'UPDATE campaign_links SET clicks = clicks + 1 WHERE campaign_id = ? AND url = ?',
  );
  const first = db.prepare<[string, string]>(`
    INSERT INTO campaign_links (campaign_id, url, clicks)
    SELECT campaign_id, ?, 1 FROM campaigns c WHERE campaign_id = ?
      AND (SELECT count(*) FROM campaign_links l WHERE l.campaign_id = c.campaign_id) < ${MAX_LINKS}`);
  const links = db.prepare<[string, number], LinkClicks>(
    'SELECT url, clicks FROM campaign_links WHERE campaign_id = ? ORDER BY clicks DESC, rowid LIMIT +?',
  );
  return {
    add: (campaignId: string, hour: number, name: CampaignCount, count: number): void => {
      add.run(hour, name, count, campaignId);
    },
    addClick: (campaignId: string, url: string): void => {
      if (again.run(campaignId, url).changes === 0) first.run(url, campaignId);
    },
    totals: (filter: CountFilter): Omit<CountedSpan, 'start'>[] => totals.all(filter),
    /** By spans of `width` ms (whole hours), in order; spans in which nothing happened are left out. */
    series: (filter: CountFilter, width: number): CountedSpan[] => series.all({ ...filter, width }),
    /** The most clicked first. */
    links: (campaignId: string, limit: number): LinkClicks[] => links.all(campaignId, limit),
  };
}
