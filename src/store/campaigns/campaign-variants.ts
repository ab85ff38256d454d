import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

export const WINNER_MEASURES = ['opens', 'clicks', 'none'] as const;
export type WinnerMeasure = (typeof WINNER_MEASURES)[number];

export const MIN_VARIANTS = 2;
export const MAX_VARIANTS = 4;

export const DECISION_REASONS = ['better', 'notSignificant', 'tooFew', 'chosen'] as const;

/** Contacts with a message of a variant in a test, and what they did with it. */
export interface VariantCounts {
  queued: number;
  delivered: number;
  /** People who opened; `clicked` likewise. */
  opened: number;
  clicked: number;
}

/**
 * `campaign_variants`, a row for each variant of a campaign, from 1. A trigger on `campaign_contacts` counts what people do, so that
 * an event of another campaign costs nothing.
 */
export function campaignVariantTable(db: Database) {
  const sql = statements(db);
  return {
    add: sql.run<[campaignSeq: number, variant: number]>(
      'INSERT INTO campaign_variants (campaign_seq, variant) VALUES (?, ?)',
    ),
    addQueued: sql.run<[messages: number, campaignSeq: number, variant: number]>(
      'UPDATE campaign_variants SET queued = queued + ? WHERE campaign_seq = ? AND variant = ?',
    ),
    /** In the order of the variants. */
    counts: sql.all<[campaignSeq: number], VariantCounts>(`
      SELECT queued, delivered, opened, clicked FROM campaign_variants WHERE campaign_seq = ? ORDER BY variant`),
  };
}
