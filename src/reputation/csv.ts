import { iso } from '../core/clock.ts';
import { REPUTATION_COUNTERS } from '../store/reputation/reputation-counts.ts';
import { RATE_NAMES, reputationRates } from './rates.ts';
import type { Reputation } from './report.ts';

/** A line for each provider and day, oldest first, with counts and rates; a rate of nothing is empty. */
export function reputationCsv({ providers }: Pick<Reputation, 'providers'>): string {
  const head = ['day', 'provider', ...REPUTATION_COUNTERS, ...RATE_NAMES.map((name) => `${name}Rate`)];
  const rows = providers.flatMap(({ provider, days }) =>
    days.map(({ day, counts }) => {
      const rates = reputationRates(counts);
      return {
        day,
        cells: [
          iso(day).slice(0, 10),
          provider,
          ...REPUTATION_COUNTERS.map((name) => String(counts[name])),
          ...RATE_NAMES.map((name) =>
            rates[name] === null ? '' : String(Number(rates[name].toPrecision(6))),
          ),
        ],
      };
    }),
  );
  // The names of providers have neither commas nor quotes.
  const lines = [head, ...rows.toSorted((a, b) => a.day - b.day).map(({ cells }) => cells)];
  return lines.map((cells) => `${cells.join(',')}\r\n`).join('');
}
