import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse as parseToml } from 'smol-toml';
import * as z from 'zod';
import { HOUR } from '../core/clock.ts';
import { errorText } from '../core/errors.ts';
import { count, duration, HOST_PATTERN, tlsMode } from './setting-types.ts';

/*
 * Shaping: the limits of connections and rate at a destination. The profiles of large receivers are data of the program
 * (`config/shaping.toml`); the entries of `delivery.shaping` change or precede them. Precedence:
 *
 *   1. entries of the configuration with their own `match`, in their order
 *   2. the profiles of the program; an entry with the `name` of one replaces the keys that it has
 *   3. the profile "default"
 */

/** The limits and the TLS requirements of the destinations that match. */
export interface ShapingProfile {
  /** Identifies the site in the log and in metrics. */
  name: string;
  /** MX hosts or recipient domains in lower case, `*.` for any depth below; empty: only the default profile. */
  match: readonly string[];
  connections: number;
  messagesPerConnection: number;
  /** Messages per second; 0: no limit. */
  perSecond: number;
  idleSeconds: number;
  tls: z.output<typeof tlsMode>;
  /** Whether messages may be sent with BDAT where a server offers CHUNKING (RFC 3030). */
  chunking: boolean;
  /** Whether all destinations of the profile are one site; false: each set of MX hosts is one. */
  shared: boolean;
  /** Ms without mail after a temporary refusal because of our address's volume or reputation; 0: as after other ones. */
  addressPause: number;
  /** How to ask the receiver to remove a block of our address, a sentence; empty: not known. */
  delisting: string;
  /** `changed`: a profile of the program with keys that the configuration replaces. */
  origin: 'program' | 'changed' | 'configuration';
}

/** The profiles of the program. */
export const SHAPING_FILE = fileURLToPath(new URL('../../config/shaping.toml', import.meta.url));

export const DEFAULT_PROFILE_NAME = 'default';
const MAX_PROFILES = 500;
const MAX_PATTERNS = 200;
/** A longer pause is a block, which a pause does not end. */
const MAX_ADDRESS_PAUSE_MS = 4 * HOUR;

const pattern = z
  .string()
  .max(255)
  .regex(HOST_PATTERN, 'must be a host name or domain such as "mx.example.com" or "*.example.com"')
  .toLowerCase();

/** An entry of `delivery.shaping`, and of the file of the program. */
export const shapingEntry = z
  .strictObject({
    name: z
      .string()
      .regex(
        /^[a-z0-9][a-z0-9.-]{0,62}$/,
        'must be 1 to 63 characters a-z, 0-9, "." and "-", the first a letter or digit',
      )
      .optional(),
    match: z
      .union(
        [pattern, z.array(pattern).min(1).max(MAX_PATTERNS)],
        'must be a host name or domain such as "mx.example.com" or "*.example.com", or a list of them',
      )
      .optional(),
    connections: count.max(1000).optional(),
    messagesPerConnection: count.max(100_000).optional(),
    perSecond: z
      .number()
      .refine(
        (rate) => rate === 0 || (rate >= 0.001 && rate <= 10_000),
        'must be 0 (no limit), or 0.001 to 10000',
      )
      .optional(),
    idleSeconds: z.int().min(0).max(3600).optional(),
    tls: tlsMode.optional(),
    chunking: z.boolean().optional(),
    shared: z.boolean().optional(),
    addressPause: duration.refine((ms) => ms <= MAX_ADDRESS_PAUSE_MS, 'must be at most "4h"').optional(),
    delisting: z.string().max(300).optional(),
  })
  .refine(
    ({ name, match }) => name !== undefined || match !== undefined,
    'needs match, or the name of a profile',
  );
export const shapingEntries = z.array(shapingEntry).max(MAX_PROFILES);

export type ShapingEntry = z.output<typeof shapingEntry>;

const programFile = z.strictObject({ profile: shapingEntries });

/** The keys that an entry may omit. */
type Limits = Omit<ShapingProfile, 'name' | 'match' | 'origin'>;

/** Used only for a key that the program's default profile lacks. */
const FALLBACK: Limits = {
  connections: 10,
  messagesPerConnection: 100,
  perSecond: 0,
  idleSeconds: 60,
  tls: 'opportunistic',
  chunking: true,
  shared: true,
  addressPause: 0,
  delisting: '',
};

export interface ShapingFault {
  /** Index of the entry in `delivery.shaping`. */
  index: number;
  key: string;
  message: string;
}

export type ResolvedShaping = { profiles: ShapingProfile[] } | { faults: ShapingFault[] };

/** Reads the profiles of the program. Throws an Error that names the file and the fault. */
export function readProgramShaping(file = SHAPING_FILE): ShapingEntry[] {
  try {
    const result = programFile.safeParse(parseToml(readFileSync(file, 'utf8')));
    if (result.success) return result.data.profile;
    const [issue] = result.error.issues;
    throw new Error(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'is invalid'}`);
  } catch (error) {
    throw new Error(`the shaping profiles of the program in ${file} cannot be used: ${errorText(error)}`, {
      cause: error,
    });
  }
}

/** The profiles in force in the order in which they apply; the last is the default. Returns all faults of the entries. */
export function resolveShaping(
  entries: readonly ShapingEntry[],
  program: readonly ShapingEntry[],
): ResolvedShaping {
  const known = new Set(program.map(({ name }) => name));
  const faults = faultsOf(entries, known);
  if (faults.length > 0) return { faults };
  const named = new Map(entries.map((entry) => [entry.name, entry]));
  const changed = (entry: ShapingEntry) => (entry.name === undefined ? undefined : named.get(entry.name));

  const programDefault = program.find(({ name }) => name === DEFAULT_PROFILE_NAME) ?? {
    name: DEFAULT_PROFILE_NAME,
  };
  const defaults = toProfile(programDefault, changed(programDefault), FALLBACK);
  const own = entries
    .filter(({ name }) => !known.has(name))
    .map((entry): ShapingProfile => ({ ...toProfile(entry, undefined, defaults), origin: 'configuration' }));
  const ofProgram = program
    .filter(({ name }) => name !== DEFAULT_PROFILE_NAME)
    .map((entry) => toProfile(entry, changed(entry), defaults));
  return { profiles: [...own, ...ofProgram, defaults] };
}

function faultsOf(entries: readonly ShapingEntry[], known: ReadonlySet<string | undefined>): ShapingFault[] {
  const faults: ShapingFault[] = [];
  const seen = new Set<string>();
  for (const [index, { name, match }] of entries.entries()) {
    const fault = (key: string, message: string) => faults.push({ index, key, message });
    if (name === DEFAULT_PROFILE_NAME && match !== undefined)
      fault('match', 'must not be set: the default profile applies where no other matches');
    if (name !== undefined && match === undefined && !known.has(name))
      fault('match', `is missing: "${name}" is not a profile of the program (${[...known].join(', ')})`);
    const id = name ?? listOf(match)[0] ?? '';
    if (seen.has(id)) fault(name === undefined ? 'match' : 'name', `"${id}" is used twice`);
    seen.add(id);
  }
  return faults;
}

/** `changes`: the entry of the configuration with the same name. */
function toProfile(entry: ShapingEntry, changes: ShapingEntry | undefined, base: Limits): ShapingProfile {
  const given = { ...entry, ...changes };
  const match = listOf(given.match);
  return {
    name: given.name ?? match[0] ?? DEFAULT_PROFILE_NAME,
    match,
    connections: given.connections ?? base.connections,
    messagesPerConnection: given.messagesPerConnection ?? base.messagesPerConnection,
    perSecond: given.perSecond ?? base.perSecond,
    idleSeconds: given.idleSeconds ?? base.idleSeconds,
    tls: given.tls ?? base.tls,
    chunking: given.chunking ?? base.chunking,
    shared: given.shared ?? base.shared,
    addressPause: given.addressPause ?? base.addressPause,
    delisting: given.delisting ?? base.delisting,
    origin: changes === undefined ? 'program' : 'changed',
  };
}

/** Whether a name in lower case matches a pattern of the profile. */
export function covers({ match }: Pick<ShapingProfile, 'match'>, name: string): boolean {
  return match.some((pattern) =>
    pattern.startsWith('*.') ? name.endsWith(pattern.slice(1)) : name === pattern,
  );
}

function listOf(match: ShapingEntry['match']): readonly string[] {
  if (match === undefined) return [];
  return typeof match === 'string' ? [match] : match;
}
