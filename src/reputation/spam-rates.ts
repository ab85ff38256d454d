import { isIP } from 'node:net';
import { csvFields, type ImportRecord } from '../audience/import/records.ts';
import { foldedColumn } from '../audience/import/rows.ts';
import { openCsv } from '../audience/import/source.ts';
import { DAY, parseMoment } from '../core/clock.ts';
import { accountLimitReached, invalid, isRefusal, type Refusal } from '../core/refusal.ts';
import { normalizeAddress } from '../dns/address-kinds.ts';
import { normalizeDomain } from '../mail/address.ts';
import { KNOWN_PROVIDERS } from '../mail/providers.ts';
import type { Context } from '../store/context.ts';
import type { SpamRateRow } from '../store/reputation/spam-rates.ts';

/*
 * Spam rates that providers state: Google about domains (Postmaster Tools), Microsoft about addresses (SNDS). One a day is
 * stored for each provider and domain or address; the same one again changes nothing, so that a file can be imported
 * again.
 */

export interface SpamRateInput {
  /** Either of both. */
  domain?: string | undefined;
  address?: string | undefined;
  provider: string;
  /** `2026-01-31`. */
  day: string;
  /** A share, from 0 to 1. */
  rate: number;
}

export const RATE_SOURCES = ['list', 'postmaster-tools', 'snds'] as const;

export interface SpamRateImport {
  source: (typeof RATE_SOURCES)[number];
  rows: number;
  created: number;
  updated: number;
  unchanged: number;
  rejected: number;
  /** The first MAX_REJECTED. */
  rejectedRows: { line: number; reason: string }[];
}

type Stored = 'created' | 'updated' | 'unchanged';

/** Rates of one account: those of 50 domains and addresses for two years. */
const MAX_SPAM_RATES = 40_000;
/** Older rates would soon be deleted. */
const MAX_AGE_MS = 731 * DAY;
const MAX_REJECTED = 100;
const ROWS_AT_A_TIME = 100;

/** Names of a provider that people and files use, in lower case. */
const PROVIDER_NAMES = new Map([
  ...[...KNOWN_PROVIDERS].map((name) => [name.toLowerCase(), name] as const),
  ['gmail', 'Google'],
  ['googlemail', 'Google'],
  ['outlook', 'Microsoft'],
  ['hotmail', 'Microsoft'],
  ['aol', 'Yahoo'],
  ['icloud', 'Apple'],
] as const);

/** Stores spam rates of accounts. Keeps no state. `maxRates`: of one account. */
export function createSpamRates(
  { clock, writer }: Pick<Context, 'clock' | 'writer'>,
  { maxRates = MAX_SPAM_RATES }: { maxRates?: number } = {},
) {
  /** Stores rows in one unit of work. A refusal means that nothing is stored. */
  async function store(rows: readonly SpamRateRow[]): Promise<Stored[] | Refusal> {
    return writer.run((tx) => {
      const stored: Stored[] = [];
      let count: number | null = null;
      for (const row of rows) {
        const known = tx.spamRates.get(row);
        if (known?.rate === row.rate) {
          stored.push('unchanged');
          continue;
        }
        if (known === null) {
          count ??= tx.spamRates.count(row.account_id, maxRates);
          if (count++ >= maxRates)
            return accountLimitReached('spamRates', maxRates, { resources: 'spam rates' });
        }
        tx.spamRates.put(row);
        stored.push(known === null ? 'created' : 'updated');
      }
      return stored;
    });
  }

  return {
    /** Stores a rate, and replaces that of the same provider, day and domain or address. */
    add: async (
      accountId: string,
      input: SpamRateInput,
    ): Promise<{ row: SpamRateRow; stored: Stored } | Refusal> => {
      const row = toRow(accountId, input, clock.now());
      if (isRefusal(row)) return row;
      const stored = await store([row]);
      return isRefusal(stored) ? stored : { row, stored: stored[0] ?? 'unchanged' };
    },
    /**
     * Imports a CSV. `domain`: what rows without a domain are about. Rejects when the upload ends early; the rows before that
     * remain.
     */
    importCsv: async (
      accountId: string,
      bytes: AsyncIterable<Buffer>,
      domain: string | undefined,
    ): Promise<SpamRateImport | Refusal> => {
      const { header, delimiter, recordsAt, close } = await openCsv(bytes);
      try {
        if (header === undefined) return invalid('body', 'is empty');
        if (header.fault !== null) return invalid('body', `the first line ${header.fault}`);
        const format = formatOf(csvFields(header.text, delimiter), domain);
        if (isRefusal(format)) return format;
        const result: SpamRateImport = {
          source: format.source,
          rows: 0,
          created: 0,
          updated: 0,
          unchanged: 0,
          rejected: 0,
          rejectedRows: [],
        };
        const { read } = format;
        const first = format.hasHeader ? [] : [header];
        const refused = await addRows(first);
        if (refused !== null) return refused;
        for await (const records of recordsAt(header.end))
          for (let at = 0; at < records.length; at += ROWS_AT_A_TIME) {
            const full = await addRows(records.slice(at, at + ROWS_AT_A_TIME));
            if (full !== null) return full;
          }
        return result;

        /** A refusal, of the limit, ends the import. */
        async function addRows(records: readonly ImportRecord[]): Promise<Refusal | null> {
          const rows: SpamRateRow[] = [];
          for (const { line, text, fault } of records) {
            const input = fault ?? read(csvFields(text, delimiter).map((value) => value.trim()));
            const row = typeof input === 'string' ? input : toRow(accountId, input, clock.now());
            result.rows++;
            if (typeof row !== 'string' && !isRefusal(row)) {
              rows.push(row);
              continue;
            }
            result.rejected++;
            if (result.rejectedRows.length < MAX_REJECTED)
              result.rejectedRows.push({ line, reason: typeof row === 'string' ? row : row.message });
          }
          const stored = await store(rows);
          if (isRefusal(stored)) return stored;
          for (const one of stored) result[one]++;
          return null;
        }
      } finally {
        await close();
      }
    },
  };
}

export type SpamRates = ReturnType<typeof createSpamRates>;

function toRow(accountId: string, input: SpamRateInput, now: number): SpamRateRow | Refusal {
  const provider = PROVIDER_NAMES.get(input.provider.trim().toLowerCase());
  if (provider === undefined) return invalid('provider', `is not one of ${[...KNOWN_PROVIDERS].join(', ')}`);
  const { domain, address } = input;
  if ((domain === undefined) === (address === undefined))
    return invalid('domain', 'is required, or `address`, but not both');
  const about = domain === undefined ? addressOf(address ?? '') : normalizeDomain(domain);
  if (about === null)
    return domain === undefined
      ? invalid('address', 'is not an IP address')
      : invalid('domain', 'is not a domain name');
  const day = /^\d{4}-\d\d-\d\d$/.test(input.day) ? parseMoment(input.day) : null;
  if (day === null) return invalid('day', 'must be a date such as 2026-01-31');
  // A day begins earlier east of Greenwich.
  if (day > now + DAY) return invalid('day', 'is in the future');
  if (day < now - MAX_AGE_MS) return invalid('day', 'is more than two years ago');
  if (!(input.rate >= 0 && input.rate <= 1))
    return invalid('rate', 'must be a share from 0 to 1: 0.001 is 0.1 %');
  return { account_id: accountId, provider, about, day, rate: input.rate, recorded_at: now };
}

function addressOf(text: string): string | null {
  return isIP(text) === 0 ? null : normalizeAddress(text);
}

interface RateFormat {
  source: SpamRateImport['source'];
  /** False: the first line has values, as in the file of SNDS for programs. */
  hasHeader: boolean;
  /** A string: why the row is rejected. */
  read(values: readonly string[]): SpamRateInput | string;
}

/** Columns as `foldedColumn` writes them, without `%`. */
const COLUMNS = {
  day: ['day', 'date', 'activityperiodstart', 'activitystart', 'activityperiod'],
  rate: ['rate', 'spamrate', 'userreportedspamrate', 'userreportedspamratio', 'complaintrate'],
  domain: ['domain', 'domainname'],
  address: ['address', 'ip', 'ipaddress'],
  provider: ['provider'],
} as const;
/** Of the file of SNDS for programs, which has no header. */
const SNDS_POSITIONS = { address: 0, day: 1, rate: 7 };

/** How the rows of a file are read, by its first line. */
function formatOf(head: readonly string[], domain: string | undefined): RateFormat | Refusal {
  const [first = ''] = head;
  if (isIP(first.trim()) !== 0 && head.length > SNDS_POSITIONS.rate)
    return {
      source: 'snds',
      hasHeader: false,
      read: rateReader(
        (values, column) =>
          column === 'address' || column === 'day' || column === 'rate'
            ? values[SNDS_POSITIONS[column]]
            : undefined,
        { provider: 'Microsoft' },
      ),
    };
  const names = head.map((name) => foldedColumn(name).replaceAll('%', ''));
  const positions = new Map(
    Object.entries(COLUMNS).map(([column, known]) => [
      column,
      names.findIndex((name) => (known as readonly string[]).includes(name)),
    ]),
  );
  const has = (column: keyof typeof COLUMNS) => (positions.get(column) ?? -1) >= 0;
  if (!has('day') || !has('rate'))
    return invalid(
      'body',
      'the header names no column of days (day, date) or of rates (rate, spam rate, complaint rate)',
    );
  const isPercent = head[positions.get('rate') ?? -1]?.includes('%') === true;
  const isSnds = has('address') && !has('provider');
  if (!has('address') && !has('domain') && domain === undefined)
    return invalid('domain', 'is required: the file has no column with the domain');
  return {
    source: has('provider') ? 'list' : isSnds ? 'snds' : 'postmaster-tools',
    hasHeader: true,
    read: rateReader((values, column) => values[positions.get(column) ?? -1], {
      provider: isSnds ? 'Microsoft' : 'Google',
      domain,
      isPercent,
    }),
  };
}

function rateReader(
  valueOf: (values: readonly string[], column: keyof typeof COLUMNS) => string | undefined,
  defaults: { provider: string; domain?: string | undefined; isPercent?: boolean },
): RateFormat['read'] {
  return (values) => {
    const text = (column: keyof typeof COLUMNS) => valueOf(values, column) || undefined;
    const day = dayOf(text('day') ?? '');
    if (day === null) return 'the day is not one';
    const stated = text('rate');
    if (stated === undefined || /^(?:n\/?a|-)$/i.test(stated)) return 'has no rate';
    const rate = shareOf(stated, defaults.isPercent ?? false);
    if (rate === null) return 'the rate is not a number';
    const address = text('address');
    const domain = address === undefined ? (text('domain') ?? defaults.domain) : undefined;
    return { provider: text('provider') ?? defaults.provider, day, rate, address, domain };
  };
}

/** `2026-01-31`, `20260131`, `1/31/2026`, each with or without a time after it; null: it is no day. */
function dayOf(text: string): string | null {
  const iso = /^(\d{4})-?(\d\d)-?(\d\d)(?:$|[ T])/.exec(text);
  if (iso !== null) return `${iso[1]}-${iso[2]}-${iso[3]}`;
  const [, month = '', day = '', year] = /^(\d{1,2})\/(\d{1,2})\/(\d{4})(?:$| )/.exec(text) ?? [];
  return year === undefined ? null : `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`;
}

/** `0.1%`, `0,1 %`, `0.001`, and `< 0.1%`, which states only an upper bound; null: it is no number. */
function shareOf(text: string, isPercent: boolean): number | null {
  const [, number = '', sign] = /^(?:[<≤] ?)?(\d{1,3}(?:[.,]\d{1,12})?)(?: ?(%))?$/.exec(text) ?? [];
  if (number === '') return null;
  const value = Number(number.replace(',', '.'));
  // 0.1 / 100 is not 0.001 in binary: to twelve digits.
  return sign === undefined && !isPercent ? value : Number((value / 100).toPrecision(12));
}
