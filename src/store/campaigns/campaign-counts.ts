import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { OTHER_PROVIDER } from '../messages/hourly-counts.ts';
import { createPendingCounts } from '../pending-counts.ts';

/*
 * Counts of a campaign's messages and events by hour. The time to read them does not depend on the number of messages. Nothing
 * is counted for a deleted campaign.
 */

/** The column of each count. */
const COLUMNS = {
  queued: 'queued',
  sent: 'sent',
  delivered: 'delivered',
  deferred: 'deferred',
  bounced: 'bounced',
  hardBounced: 'hard_bounced',
  blocked: 'blocked',
  complained: 'complained',
  opened: 'opened',
  uniqueOpened: 'unique_opened',
  clicked: 'clicked',
  uniqueClicked: 'unique_clicked',
  unsubscribed: 'unsubscribed',
  failed: 'failed',
  cancelled: 'cancelled',
} as const;
export type CampaignCount = keyof typeof COLUMNS;
export const CAMPAIGN_COUNTS = Object.keys(COLUMNS) as readonly CampaignCount[]; // the table has no other keys

export type CampaignTotals = Record<CampaignCount, number>;

/** The counts of a step of a sequence. */
const STEP_COUNTS: readonly CampaignCount[] = [
  'queued',
  'delivered',
  'bounced',
  'complained',
  'uniqueOpened',
  'uniqueClicked',
  'unsubscribed',
];

interface CountedStep {
  sequenceId: string;
  version: number;
  step: number;
}

/** The id that messages of a step have in place of that of a campaign. */
export function stepCampaignId({ sequenceId, version, step }: CountedStep): string {
  return `${sequenceId}_${version}_${step}`;
}

/** The step of a message's campaign id; null: it is that of a campaign. */
function stepOf(campaignId: string): CountedStep | null {
  if (!campaignId.startsWith('seq_')) return null;
  const [, sequenceId, version, step] = /^(seq_\d+_[0-9a-z]+)_(\d+)_(\d+)$/.exec(campaignId) ?? [];
  if (sequenceId === undefined) return null;
  return { sequenceId, version: Number(version), step: Number(step) };
}

/** The column of each count by provider. */
const PROVIDER_COLUMNS = {
  delivered: 'delivered',
  bounced: 'bounced',
  complained: 'complained',
  unsubscribed: 'unsubscribed',
  /** Messages that a person opened; `uniqueClicked` likewise. */
  uniqueOpened: 'unique_opened',
  uniqueClicked: 'unique_clicked',
  /** Messages that a program opened, such as one that loads images in advance or checks links. */
  machineOpened: 'machine_opened',
  machineClicked: 'machine_clicked',
} as const;
export type ProviderCount = keyof typeof PROVIDER_COLUMNS;
export const PROVIDER_COUNTS = Object.keys(PROVIDER_COLUMNS) as readonly ProviderCount[]; // the table has no other keys

export type ProviderTotals = { provider: string } & Record<ProviderCount, number>;

export interface CountFilter {
  campaignId: string;
  /** Hours that begin at or after `from` and before `to`, epoch ms. */
  from: number;
  to: number;
}

/** `start`: epoch ms. */
export type CountedSpan = { start: number } & CampaignTotals;

export interface LinkClicks {
  url: string;
  clicks: number;
}

/**
 * Maximum number of URLs that are counted for one campaign. A campaign with more has a different link for each
 * recipient, and a ranking of them has no meaning.
 */
const MAX_LINKS = 1000;

/** Maximum number of providers that are counted separately: recipient domains are chosen by callers. */
const MAX_PROVIDERS = 100;

export const CAMPAIGN_PROVIDER_POLICY = {
  table: 'campaign_providers',
  personal: ['provider'],
  erasure: { stays: 'the domain of recipients without their mailbox, counted with that of others' },
  retention: { until: 'the campaign is deleted' },
} as const satisfies DataPolicy;

export const CAMPAIGN_LINK_POLICY = {
  table: 'campaign_links',
  // A link of a campaign may have been rendered with a recipient's data.
  personal: ['url'],
  erasure: ['messages'],
  retention: { until: 'the campaign is deleted' },
} as const satisfies DataPolicy;

interface CountOfHour {
  campaignId: string;
  hour: number;
  name: CampaignCount;
  count: number;
}

interface CountOfProvider {
  campaignId: string;
  provider: string;
  name: ProviderCount;
  count: number;
}

/**
 * `campaign_counts` by hour, `campaign_links` and `campaign_providers`; deleted with their campaign. Additions run in
 * the unit of work of the event, and do nothing for a campaign that does not exist. Counts of open units are in memory, except
 * those of links: reads return them only after the writer has called `endUnit` and `write`.
 */
export function campaignCountTable(db: Database) {
  const sql = statements(db);
  const add = new Map(
    Object.entries(COLUMNS).map(([name, column]) => [
      name,
      db.prepare<[number, number, string]>(`
        INSERT INTO campaign_counts (campaign_id, hour, ${column})
        SELECT campaign_id, ?, ? FROM campaigns WHERE campaign_id = ?
        ON CONFLICT DO UPDATE SET ${column} = ${column} + excluded.${column}`),
    ]),
  );
  const sums = Object.entries(COLUMNS)
    .map(([name, column]) => `coalesce(sum(${column}), 0) AS ${name}`)
    .join(', ');
  const within = 'campaign_id = @campaignId AND hour >= @from AND hour < @to';
  const totals = db.prepare<CountFilter, CampaignTotals>(
    `SELECT ${sums} FROM campaign_counts WHERE ${within}`,
  );
  const series = sql.all<[CountFilter & { width: number }], CountedSpan>(`
    SELECT hour - hour % @width AS start, ${sums} FROM campaign_counts
    WHERE ${within} GROUP BY start ORDER BY start`);
  const countClick = sql.changes<[string, string]>(
    'UPDATE campaign_links SET clicks = clicks + 1 WHERE campaign_id = ? AND url = ?',
  );
  const insertLink = sql.run<[string, string]>(`
    INSERT INTO campaign_links (campaign_id, url, clicks)
    SELECT campaign_id, ?, 1 FROM campaigns c WHERE campaign_id = ?
      AND (SELECT count(*) FROM campaign_links l WHERE l.campaign_id = c.campaign_id) < ${MAX_LINKS}`);
  const ofProvider = new Map(
    Object.entries(PROVIDER_COLUMNS).map(([name, column]) => [
      name,
      {
        increase: db.prepare<[number, string, string]>(
          `UPDATE campaign_providers SET ${column} = ${column} + ? WHERE campaign_id = ? AND provider = ?`,
        ),
        insert: db.prepare<Omit<CountOfProvider, 'name'>>(`
          INSERT INTO campaign_providers (campaign_id, provider, ${column})
          SELECT campaign_id,
            CASE WHEN (SELECT count(*) FROM campaign_providers WHERE campaign_id = @campaignId) < ${MAX_PROVIDERS}
              THEN @provider ELSE '${OTHER_PROVIDER}' END, @count
          FROM campaigns WHERE campaign_id = @campaignId
          ON CONFLICT DO UPDATE SET ${column} = ${column} + excluded.${column}`),
      },
    ]),
  );
  // Read separately: a statement that writes and names `sequences` empties the caches of rows.
  const sequenceSeq = sql.value<[sequenceId: string], number>(
    'SELECT seq FROM sequences WHERE sequence_id = ?',
  );
  const addToStep = new Map(
    STEP_COUNTS.map((name) => [
      name,
      db.prepare<[number, number, number, number]>(`
        INSERT INTO sequence_counts (sequence_seq, version, step, ${COLUMNS[name]}) VALUES (?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET ${COLUMNS[name]} = ${COLUMNS[name]} + excluded.${COLUMNS[name]}`),
    ]),
  );
  const addCount = (row: { count: number }, added: { count: number }) => {
    row.count += added.count;
  };
  const pendingHours = createPendingCounts<CountOfHour>(addCount);
  const pendingProviders = createPendingCounts<CountOfProvider>(addCount);

  function storeProvider({ name, ...counted }: CountOfProvider): void {
    const statements = ofProvider.get(name);
    const { count, campaignId, provider } = counted;
    if (statements?.increase.run(count, campaignId, provider).changes === 0) statements.insert.run(counted);
  }

  return {
    add: (campaignId: string, hour: number, name: CampaignCount, count: number): void =>
      pendingHours.add(`${campaignId} ${hour} ${name}`, { campaignId, hour, name, count }),
    addClick: (campaignId: string, url: string): void => {
      if (countClick(campaignId, url) === 0) insertLink(url, campaignId);
    },
    totals: (filter: CountFilter): CampaignTotals => {
      const sums = totals.get(filter);
      if (sums === undefined) throw new Error('an aggregate query returned no row');
      return sums;
    },
    /** Counts by spans of `width` ms (whole hours), in order, without spans that have no counts. */
    series: (filter: CountFilter, width: number): CountedSpan[] => series({ ...filter, width }),
    addOfProvider: (campaignId: string, provider: string, name: ProviderCount): void =>
      pendingProviders.add(`${campaignId} ${provider} ${name}`, { campaignId, provider, name, count: 1 }),
    /** For the writer, like `write` and `discard`. */
    endUnit: (isCommitted: boolean): void => {
      pendingHours.endUnit(isCommitted);
      pendingProviders.endUnit(isCommitted);
    },
    /** Writes the counts of all units of the open transaction. */
    write: (): void => {
      for (const { campaignId, hour, name, count } of pendingHours.take()) {
        const step = stepOf(campaignId);
        const seq = step === null ? null : sequenceSeq(step.sequenceId);
        if (step === null) add.get(name)?.run(hour, count, campaignId);
        else if (seq !== null) addToStep.get(name)?.run(seq, step.version, step.step, count);
      }
      for (const one of pendingProviders.take()) storeProvider(one);
    },
    discard: (): void => {
      pendingHours.discard();
      pendingProviders.discard();
    },
    /** The provider with the most messages first; `other` has those of all that are not counted separately. */
    providers: sql.all<[campaignId: string], ProviderTotals>(`
      SELECT provider, ${Object.entries(PROVIDER_COLUMNS)
        .map(([name, column]) => `${column} AS ${name}`)
        .join(', ')}
      FROM campaign_providers WHERE campaign_id = ?
      ORDER BY delivered + bounced DESC, provider LIMIT ${MAX_PROVIDERS + 1}`),
    /** The URL with the most clicks first. */
    links: sql.all<[campaignId: string, limit: number], LinkClicks>(
      'SELECT url, clicks FROM campaign_links WHERE campaign_id = ? ORDER BY clicks DESC, rowid LIMIT +?',
    ),
  };
}
