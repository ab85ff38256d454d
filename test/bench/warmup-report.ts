import { EVERY_NTH_UNKNOWN, MONTH_ADDRESSES, MONTH_PROVIDERS } from './warmup/providers.ts';
import type { DayRow, MonthResult } from './warmup-month.ts';

/** What is wrong with a simulated month; empty: the schedule was kept and nothing was lost. */
export function faultsOfMonth(month: MonthResult): string[] {
  const faults: string[] = [];
  for (const { day, rows } of month.days) {
    for (const row of rows) {
      const sent = row.transactional + row.marketing;
      // Transactional mail may use twice the limit while no warm address can take it.
      if (row.cap !== null && (row.marketing > row.cap || sent > 2 * row.cap))
        faults.push(
          `day ${day}: ${row.entry} sent ${row.transactional} + ${row.marketing} messages to ${row.provider}, limit ${row.cap}`,
        );
    }
  }
  const ended = month.delivered + month.bounced + month.failed + month.queued;
  if (ended !== month.accepted) faults.push(`accepted ${month.accepted}, but ${ended} are known`);
  if (month.received !== month.delivered)
    faults.push(`delivered ${month.delivered}, but the providers accepted ${month.received}`);
  if (month.duplicates > 0) faults.push(`${month.duplicates} duplicates`);
  if (month.failed > 0) faults.push(`${month.failed} messages failed`);
  const unknown = Math.floor(month.accepted / EVERY_NTH_UNKNOWN);
  if (month.queued === 0 && month.bounced !== unknown)
    faults.push(`${month.bounced} messages bounced, ${unknown} have unknown recipients`);
  return faults;
}

const PANEL = { width: 260, height: 150, left: 48, top: 34, gapX: 66, gapY: 56, columns: 3 };
const COLORS = ['#1f77b4', '#d62728', '#2ca02c'];

/** A panel for each provider: messages of each address by day, on a logarithmic scale, below the limits. */
export function chartOfMonth(month: MonthResult, title: string): string {
  const providers = Object.keys(MONTH_PROVIDERS);
  const days = month.days.length;
  const most = Math.max(
    10,
    ...month.days.flatMap(({ rows }) => rows.map((row) => Math.max(sentOf(row), row.cap ?? 0))),
  );
  const decades = Math.ceil(Math.log10(most));
  const x = (day: number) => ((day - 1) / Math.max(1, days - 1)) * PANEL.width;
  const y = (n: number) => PANEL.height * (1 - Math.log10(Math.max(1, n)) / decades);
  const rowsOf = (provider: string, entry: string) =>
    month.days.map(({ rows }) => rows.find((row) => row.provider === provider && row.entry === entry));
  const line = (points: [number, number][], attributes: string) =>
    points.length === 0
      ? ''
      : `<polyline fill="none" ${attributes} points="${points.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join(' ')}"/>`;
  const panels = providers.map((provider, index) => {
    const left = PANEL.left + (index % PANEL.columns) * (PANEL.width + PANEL.gapX);
    const top = 60 + PANEL.top + Math.floor(index / PANEL.columns) * (PANEL.height + PANEL.gapY);
    const grid = Array.from({ length: decades + 1 }, (_, n) => {
      const at = y(10 ** n).toFixed(1);
      return `<line x1="0" x2="${PANEL.width}" y1="${at}" y2="${at}" class="grid"/><text x="-6" y="${at}" dy="4" text-anchor="end">${shortNumber(10 ** n)}</text>`;
    });
    const ticks = [1, 5, 10, 15, 20, 25, 30]
      .filter((day) => day <= days)
      .map(
        (day) => `<text x="${x(day).toFixed(1)}" y="${PANEL.height + 16}" text-anchor="middle">${day}</text>`,
      );
    const series = Object.keys(MONTH_ADDRESSES).map((entry, at) => {
      const rows = rowsOf(provider, entry);
      const color = COLORS[at] ?? '#000';
      const caps = rows.flatMap((row, n): [number, number][] =>
        row === undefined || row.cap === null ? [] : [[x(n + 1), y(row.cap)]],
      );
      const sent = rows.flatMap((row, n): [number, number][] =>
        row === undefined ? [] : [[x(n + 1), y(sentOf(row))]],
      );
      const refused = rows.flatMap((row, n) =>
        row?.isRefused === true
          ? [
              `<circle cx="${x(n + 1).toFixed(1)}" cy="${y(sentOf(row)).toFixed(1)}" r="3.5" fill="${color}"/>`,
            ]
          : [],
      );
      return `${line(caps, `stroke="${color}" stroke-width="1" stroke-dasharray="2 3"`)}${line(sent, `stroke="${color}" stroke-width="1.6"`)}${refused.join('')}`;
    });
    return `<g transform="translate(${left} ${top})"><text class="name" x="0" y="-10">${provider}</text>${grid.join('')}${ticks.join('')}${series.join('')}</g>`;
  });
  const width = PANEL.left + PANEL.columns * (PANEL.width + PANEL.gapX);
  const height = 60 + PANEL.top + Math.ceil(providers.length / PANEL.columns) * (PANEL.height + PANEL.gapY);
  const legend = Object.keys(MONTH_ADDRESSES).map(
    (entry, at) =>
      `<g transform="translate(${PANEL.left + at * 90} 44)"><line x1="0" x2="22" y1="0" y2="0" stroke="${COLORS[at] ?? '#000'}" stroke-width="2"/><text x="28" y="4">${entry}</text></g>`,
  );
  const notes = `<text x="${PANEL.left + 290}" y="48">dotted: limit of the day; filled circle: the provider refused the address</text>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="11">
<style>text { fill: #333 } .grid { stroke: #ddd } .name { font-size: 13px; font-weight: bold }</style>
<rect width="100%" height="100%" fill="#fff"/>
<text class="name" x="${PANEL.left}" y="24">${title}</text>
${legend.join('\n')}
${notes}
${panels.join('\n')}
</svg>
`;
}

function sentOf({ transactional, marketing }: DayRow): number {
  return transactional + marketing;
}

function shortNumber(n: number): string {
  if (n >= 1_000_000) return `${n / 1_000_000} M`;
  return n >= 1000 ? `${n / 1000} k` : String(n);
}
