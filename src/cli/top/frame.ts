import { styleText } from 'node:util';
import { alignedTable, escapeControls } from '../output/table.ts';
import type { Readings } from './readings.ts';

export interface FrameOptions {
  /** Columns and rows of the terminal. */
  width: number;
  height: number;
  color: boolean;
  /** Shown in the first line. */
  source: string;
  /** Epoch ms. */
  now: number;
  /** Why the readings are out of date; null: they are current. */
  problem: string | null;
}

/** Maximum number of rows of each table. */
const MAX_ROWS = 10;
/** Lines above the tables. */
const HEAD_LINES = 8;
const TABLES = 4;
/** Title, heading and the empty line of a table. */
const TABLE_OVERHEAD = 3;

/** Renders a screen of at most `height` lines, at most `width` wide. `readings` null: nothing was read yet. */
export function renderFrame(readings: Readings | null, options: FrameOptions): string[] {
  const { width, height, source, now, problem } = options;
  const bold = (text: string) => style('bold', text, options);
  const started = readings?.value('process_start_time_seconds') ?? null;
  const up = started === null ? '' : `, up ${duration(now / 1000 - started)}`;
  const lines = [bold(fit(`postrider top - ${source} - ${clockTime(now)}${up}`, width))];
  if (problem !== null) lines.push(style('red', fit(escapeControls(problem), width), options));
  if (readings !== null) {
    lines.push('', ...summary(readings, options));
    const rows = Math.max(1, Math.min(MAX_ROWS, Math.floor((height - HEAD_LINES) / TABLES) - TABLE_OVERHEAD));
    for (const { title, table } of tables(readings, rows)) {
      if (table.length <= 1) continue;
      lines.push(
        '',
        bold(title),
        ...alignedTable(table)
          .split('\n')
          .map((line) => fit(line, width)),
      );
    }
  }
  return lines.slice(0, height);
}

function summary(readings: Readings, options: FrameOptions): string[] {
  const { value, rate, mean, quantile } = readings;
  const messages = (outcome: string) =>
    `${outcome} ${perSecond(rate('postrider_messages_total', { outcome }))}`;
  const state = (name: string) =>
    `${name} ${integer(value('postrider_queue_state_messages', { state: name }))}`;
  const suspended = value('postrider_delivery_suspended_sites') ?? 0;
  const oldest = value('postrider_queue_oldest_due_seconds');
  const workers = readings
    .values('postrider_delivery_worker_busy_seconds_total', 'worker')
    .map((worker) => share(rate('postrider_delivery_worker_busy_seconds_total', { worker })));
  const stopped = [
    (value('postrider_delivery_unrecorded') ?? 0) > 0 ? 'outcomes cannot be recorded' : null,
    (value('postrider_delivery_stalled') ?? 0) > 0 ? 'the queue is not read' : null,
  ].filter((text) => text !== null);
  const lines: [string, string[], boolean?][] = [
    ['Messages/s', ['accepted', 'delivered', 'deferred', 'bounced', 'failed'].map(messages)],
    [
      'Queue',
      [
        integer(value('postrider_queue_messages')),
        ...['ready', 'sending', 'waiting', 'held'].map(state),
        `oldest due ${duration(oldest)}`,
      ],
    ],
    [
      'Delivery',
      [
        `in flight ${integer(value('postrider_deliveries_in_flight'))} of ${integer(value('postrider_delivery_connections_limit'))}`,
        `suspended sites ${integer(suspended)}`,
        `workers ${workers.join(' ')}`,
        ...stopped,
      ],
      suspended > 0 || stopped.length > 0,
    ],
    [
      'Database',
      [
        `commit ${milliseconds(mean('postrider_commit_seconds'))}`,
        `flush ${milliseconds(mean('postrider_flush_seconds'))}`,
        `WAL ${bytes(value('postrider_database_wal_bytes'))}`,
        `file ${bytes(value('postrider_database_bytes'))}`,
        `disk free ${bytes(value('postrider_disk_free_bytes'))}`,
      ],
    ],
    [
      'Process',
      [
        `event loop delay p99 ${atMost(quantile('postrider_event_loop_delay_seconds', 0.99))}`,
        `CPU ${share(rate('process_cpu_seconds_total'))}`,
        `memory ${bytes(value('process_resident_memory_bytes'))}`,
      ],
    ],
    [
      'Webhooks',
      [
        `calls waiting ${integer(value('postrider_webhook_backlog_calls'))}`,
        `oldest ${duration(value('postrider_webhook_oldest_call_seconds'))}`,
      ],
    ],
  ];
  return lines.map(([title, parts, isWarning = false]) => {
    const line = fit(`${title.padEnd(11)} ${parts.join('  ')}`, options.width);
    return isWarning ? style('yellow', line, options) : line;
  });
}

/** The tables; the first row of each is its heading. */
function tables(readings: Readings, rows: number): { title: string; table: string[][] }[] {
  const { value, largest } = readings;
  const destinations = largest('postrider_queue_destination_messages', 'destination', rows).map(
    ({ name, value: messages }) => [
      name,
      integer(messages),
      duration(value('postrider_queue_destination_oldest_due_seconds', { destination: name })),
    ],
  );
  const suspended = largest('postrider_delivery_site_suspended_seconds', 'site', rows).map(
    ({ name, value: seconds }) => [name, duration(seconds)],
  );
  const perSite = (result: string) => (site: string) =>
    readings.rate('postrider_site_attempts_total', { site, result });
  const perAccount = (outcome: string) => (account: string) =>
    readings.rate('postrider_account_messages_total', { account, outcome });
  return [
    { title: 'Queue by destination', table: [['destination', 'messages', 'oldest due'], ...destinations] },
    {
      title: 'Busiest sites (attempts/s)',
      table: rates(
        readings.values('postrider_site_attempts_total', 'site'),
        'site',
        ['delivered', 'deferred', 'bounced'].map((name) => ({ name, rateOf: perSite(name) })),
        rows,
      ),
    },
    {
      title: 'Busiest accounts (messages/s)',
      table: rates(
        readings.values('postrider_account_messages_total', 'account'),
        'account',
        ['accepted', 'delivered', 'deferred', 'bounced'].map((name) => ({ name, rateOf: perAccount(name) })),
        rows,
      ),
    },
    { title: 'Suspended sites', table: [['site', 'probed in'], ...suspended] },
  ];
}

/** The names with the highest sum of rates, without those whose sum is 0. */
function rates(
  names: readonly string[],
  heading: string,
  columns: readonly { name: string; rateOf: (name: string) => number | null }[],
  rows: number,
): string[][] {
  const listed = names
    .map((name) => ({ name, rates: columns.map(({ rateOf }) => rateOf(name)) }))
    .map((row) => ({ ...row, sum: row.rates.reduce<number>((sum, one) => sum + (one ?? 0), 0) }))
    .filter(({ sum }) => sum > 0)
    .toSorted((a, b) => b.sum - a.sum)
    .slice(0, rows);
  return [
    [heading, ...columns.map(({ name }) => name)],
    ...listed.map(({ name, rates: values }) => [name, ...values.map(perSecond)]),
  ];
}

function style(name: 'bold' | 'red' | 'yellow', text: string, { color }: FrameOptions): string {
  return color ? styleText(name, text, { validateStream: false }) : text;
}

function fit(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

function perSecond(rate: number | null): string {
  if (rate === null) return '-';
  return rate.toFixed(rate > 0 && rate < 10 ? 1 : 0);
}

function integer(value: number | null): string {
  return value === null ? '-' : value.toLocaleString('en');
}

function share(rate: number | null): string {
  return rate === null ? '-' : `${(rate * 100).toFixed(0)}%`;
}

function milliseconds(seconds: number | null): string {
  return seconds === null ? '-' : `${(seconds * 1000).toFixed(1)} ms`;
}

function atMost(seconds: number | null): string {
  if (seconds === null) return '-';
  return Number.isFinite(seconds) ? `<= ${(seconds * 1000).toFixed(0)} ms` : '> 5 s';
}

/** `45 s`, `12 min`, `3 h 20 min`, `4 d 2 h`. */
function duration(seconds: number | null): string {
  if (seconds === null) return '-';
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

function bytes(value: number | null): string {
  if (value === null) return '-';
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, value)) / 10));
  const scaled = value / 1024 ** power;
  return `${scaled.toFixed(power > 0 && scaled < 100 ? 1 : 0)} ${UNITS[power]}`;
}

function clockTime(now: number): string {
  const time = new Date(now);
  return [time.getHours(), time.getMinutes(), time.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}
