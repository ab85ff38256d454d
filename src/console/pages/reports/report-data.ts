import type * as z from 'zod';
import type { domainReportsSchema } from '../../../http/api/domains/domain-reports.ts';

export type ShownReports = z.output<typeof domainReportsSchema>;

/** A share in percent, rounded down: 100 % means all. */
export function percent(part: number, whole: number): string {
  return whole === 0 ? '–' : `${Math.floor((part / whole) * 1000) / 10} %`;
}
