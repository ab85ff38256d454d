import type { Database } from '../database/database.ts';

/*
 * Limits of stored reports. Anyone can send reports, in any name and with any dates. Therefore reports are deleted in the
 * order of reception, and a sender's reports displace its own before those of others: each network, claimed organization
 * and signing organization has a share of the reports about one name. Where a share is exceeded, unverified reports are
 * deleted before verified ones, unsigned before signed ones, and first those of the network with the most reports.
 */

export interface ReportOrigin {
  organization: string;
  /** Network of the server that sent the report. */
  network: string;
  /** Organization whose DKIM signature verified; '': none. */
  signer: string;
}

/** Maximum number of reports about one domain or host. */
export const MAX_REPORTS = 3000;
/** Maximum number from one network, in one organization's name, or signed by one organization. */
export const MAX_REPORTS_PER_SENDER = 500;

const SHARES = ['network', 'organization', 'signer'] as const;

/** Returns a function that deletes the reports above the limits, to be called after each report. */
export function reportShares(
  db: Database,
  { table, about }: { table: 'dmarc_reports' | 'tls_reports'; about: 'domain' | 'host' },
): (name: string, origin: ReportOrigin) => void {
  const scopes = [null, ...SHARES].map((share) => {
    const where = `${about} = @name${share === null ? '' : ` AND ${share} = @value`}`;
    return {
      share,
      max: share === null ? MAX_REPORTS : MAX_REPORTS_PER_SENDER,
      count: db
        .prepare<{ name: string; value: string }, number>(`SELECT count(*) FROM ${table} WHERE ${where}`)
        .pluck(),
      drop: db.prepare<{ name: string; value: string; surplus: number }>(`
        DELETE FROM ${table} WHERE seq IN (
          SELECT seq FROM ${table} WHERE ${where}
          ORDER BY verified, signer <> '', count(*) OVER (PARTITION BY network) DESC, seq LIMIT +@surplus)`),
    };
  });
  return (name, origin) => {
    for (const { share, max, count, drop } of scopes) {
      const value = share === null ? '' : origin[share];
      // Unsigned reports have no signer.
      if (share === 'signer' && value === '') continue;
      const surplus = (count.get({ name, value }) ?? 0) - max;
      if (surplus > 0) drop.run({ name, value, surplus });
    }
  };
}
