import type * as z from 'zod';
import type { domainReportsSchema } from '../../../http/api/domains/domain-reports.ts';

export type ShownReports = z.output<typeof domainReportsSchema>;
