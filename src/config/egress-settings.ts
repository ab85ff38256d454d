import * as z from 'zod';
import { count, hostName, name } from './setting-types.ts';

/* The types of `delivery.egress` and of the warm-up of its addresses. */

/** `socks5://[user@]host:port` (RFC 1928); an IPv6 address in brackets. */
const PROXY = /^socks5:\/\/(?:([^@:/\s]+)@)?(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9._-]+):(\d{1,5})$/;

export interface ProxyAddress {
  host: string;
  port: number;
  /** Null: without authentication. */
  user: string | null;
}

/** Parses the address of a SOCKS5 proxy; null when the text is not one. */
export function parseProxy(text: string): ProxyAddress | null {
  const [, user, host = '', at] = PROXY.exec(text) ?? [];
  const number = Number(at);
  if (!(number >= 1 && number <= 65_535)) return null;
  return { host: host.replace(/^\[|\]$/g, '').toLowerCase(), port: number, user: user ?? null };
}

/** The first day of a warm-up, from 00:00 UTC: a TOML date or a string; parsed to `2026-12-01`. */
const day = z
  .union([z.date(), z.string()], 'must be a date such as 2026-12-01')
  .transform((value) =>
    typeof value === 'string' || Number.isNaN(value.getTime())
      ? String(value)
      : value.toISOString().slice(0, 10),
  )
  .refine(isDay, 'must be a date such as 2026-12-01');

function isDay(text: string): boolean {
  const at = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN;
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text);
}

const warmup = z.strictObject({ started: day, days: z.int().min(1).max(365).default(30) });

interface EgressInput {
  address?: string | undefined;
  address6?: string | undefined;
  publicAddress?: string | undefined;
  proxy?: string | undefined;
  proxyPasswordFile?: string | undefined;
}

function checkProxy(entry: EgressInput, context: z.RefinementCtx): void {
  const fault = (path: string, message: string) =>
    context.addIssue({ code: 'custom', path: [path], message });
  if (entry.proxy === undefined) {
    if (entry.proxyPasswordFile !== undefined) fault('proxy', 'is missing: proxyPasswordFile needs it');
    return;
  }
  const proxy = parseProxy(entry.proxy);
  if (proxy === null) return;
  if ((proxy.user === null) !== (entry.proxyPasswordFile === undefined))
    fault(
      'proxyPasswordFile',
      proxy.user === null
        ? 'needs a user in proxy: "socks5://user@host:port"'
        : `is missing: user ${proxy.user} of the proxy needs it`,
    );
  if ([entry.address, entry.address6, entry.publicAddress].every((one) => one === undefined))
    fault(
      'address',
      'is missing: name the address from which the proxy connects; SPF and the checks need it',
    );
}

export const egressEntry = z
  .strictObject({
    name,
    address: z.ipv4().optional(),
    address6: z.ipv6().optional(),
    publicAddress: z.union([z.ipv4(), z.ipv6()]).optional(),
    hostname: hostName.optional(),
    pools: z.array(name).min(1).default(['default']),
    proxy: z
      .string()
      .refine(
        (text) => parseProxy(text) !== null,
        'must be "socks5://host:port" or "socks5://user@host:port"; put the password in proxyPasswordFile',
      )
      .optional(),
    proxyPasswordFile: z.string().min(1).optional(),
    warmup: warmup.optional(),
  })
  .superRefine(checkProxy);

/** Messages per provider and day on each step of a warm-up; unlimited after the last one. */
export const DEFAULT_WARMUP_SCHEDULE: readonly number[] = [
  50, 100, 200, 400, 800, 1500, 2000, 3000, 4500, 6500, 9000, 12_500, 16_000, 20_000, 27_000, 36_000, 48_000,
  64_000, 85_000, 110_000, 150_000, 200_000, 265_000, 350_000, 470_000, 630_000, 840_000, 1_100_000,
  1_500_000, 2_000_000,
];

export const warmupSchedule = z
  .array(count)
  .min(1)
  .max(365)
  .refine(
    (steps) => steps.every((cap, index) => cap >= (steps[index - 1] ?? 0)),
    'must not contain a smaller number after a larger one',
  );

export type EgressSetting = z.output<typeof egressEntry>;
