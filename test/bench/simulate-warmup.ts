import { writeFileSync } from 'node:fs';
import { DEFAULT_WARMUP_SCHEDULE } from '../../src/config/egress-settings.ts';
import { readOptions } from './options.ts';
import { simulateMonth } from './warmup-month.ts';
import { chartOfMonth, faultsOfMonth } from './warmup-report.ts';

/**
 * `npm run simulate:warmup [-- --recipients N]`: warms up three new addresses with two million recipients at eight providers,
 * with the default schedule, and writes the chart of docs/egress.md. With fewer recipients the limits are reduced in
 * proportion. Exit code 1: the schedule was exceeded, or a message was lost. The full size takes about ten minutes of
 * CPU time.
 */
const FULL_SIZE = 2_000_000;
const TRANSACTIONAL_PER_DAY = 960;
const { recipients } = readOptions({
  command: 'npm run simulate:warmup',
  summary: `Simulates a month in which three new addresses are warmed up, and writes the chart docs/images/warmup.svg. Exits with 1
when the schedule was exceeded or a message was lost. The full size takes about ten minutes of CPU time.`,
  options: {
    recipients: {
      integer: FULL_SIZE,
      help: 'recipients at eight providers; with fewer, the limits are reduced in proportion',
    },
  },
});
const scale = recipients / FULL_SIZE;
const month = await simulateMonth({
  recipients,
  transactionalPerDay: Math.ceil(TRANSACTIONAL_PER_DAY * scale),
  schedule: DEFAULT_WARMUP_SCHEDULE.map((cap) => Math.max(1, Math.round(cap * scale))),
  days: DEFAULT_WARMUP_SCHEDULE.length,
  onDay: ({ day, rows, queued }) => {
    const sent = rows.reduce((sum, row) => sum + row.transactional + row.marketing, 0);
    const behind = rows.filter(({ reason }) => reason !== null).length;
    console.log(
      `day ${String(day).padStart(2)}: ${sent.toLocaleString('en')} sent, ${queued.toLocaleString('en')} queued, ${behind} behind the calendar`,
    );
  },
});
const { days: _, ...totals } = month;
console.log(totals);
writeFileSync(
  new URL('../../docs/images/warmup.svg', import.meta.url),
  chartOfMonth(
    month,
    `Warm-up of three addresses, ${recipients.toLocaleString('en')} recipients${scale === 1 ? '' : ` (limits × ${scale})`}: messages per day by provider and address`,
  ),
);
const faults = faultsOfMonth(month);
for (const fault of faults) console.error(fault);
process.exitCode = faults.length === 0 ? 0 : 1;
