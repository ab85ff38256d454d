import type { DataOf } from '../../operations.ts';

export type ShownReports = DataOf<'/web-setup/domains/{domainId}/reports'>;
