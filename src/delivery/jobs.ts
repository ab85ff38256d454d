import { readFileSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import type { Config } from '../config/schema.ts';
import type { DeliveryRoute } from '../config/setting-types.ts';
import { fileFault, OperatorFault } from '../core/operator-fault.ts';
import type { JobContent } from '../mail/stored-content.ts';
import type { DomainRow, Lane } from '../store/domains/domains.ts';
import type { ContentRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import type { EgressEntry } from './egress-pools.ts';
import type { DeliveryPaths } from './lanes.ts';
import type { Prepare, SignersOf } from './prepare.ts';
import type { Assignment, SiteProfile, SlotReservation } from './scheduling/site.ts';
import type { DeliveryJob, JobEgress, SharedReference, TlsSource } from './worker/protocol.ts';

/**
 * Builds what a worker needs to send one message. Returns the reason when the message can never be sent. Throws when
 * something that the message needs cannot be read.
 */
export type BuildJob = (
  reservation: SlotReservation,
  assignment: Assignment,
  entry: EgressEntry,
) => DeliveryJob | 'domain_deleted' | 'content_invalid';

export interface JobBuilder {
  build: BuildJob;
  /** Replaces the passwords of the configured routes; `passwords`: see `readPasswords`. */
  usePasswords(passwords: RoutePasswords): void;
}

/** Undefined: no authentication. */
export interface RoutePasswords {
  /** Passwords of the fixed routes, by position in `delivery.routes`. */
  routes: readonly (string | undefined)[];
  /** Password of the relay of the secondary lane. */
  relay: string | undefined;
}

export interface JobsDeps {
  config: Pick<Config, 'delivery' | 'secondary'>;
  paths: Pick<DeliveryPaths, 'relay'>;
  tables: Tables;
  /** What a worker needs of a source address. */
  jobEgress(entry: EgressEntry): JobEgress;
  prepare: Prepare;
  signersOf: SignersOf;
}

/** Reads the password files of the routes: a file that cannot be read throws an `OperatorFault` here. */
export function createJobBuilder(deps: JobsDeps): JobBuilder {
  const { tables, jobEgress, paths, prepare, signersOf } = deps;
  const config = deps.config.delivery;
  /** Messages in memory refer to routes that a reload has replaced. */
  const passwords = new WeakMap<DeliveryRoute, string>();
  const usePasswords = (given: RoutePasswords) => {
    for (const [index, route] of config.routes.entries()) {
      const password = given.routes[index];
      if (password !== undefined) passwords.set(route, password);
    }
    const relay = paths.relay();
    if (relay !== null && given.relay !== undefined) passwords.set(relay, given.relay);
  };
  usePasswords(readPasswords(deps.config));
  const sharedContent = createSharedContentReader(tables);

  /** A domain whose key of the secondary lane was removed meanwhile is signed with the other one. */
  const signersIn = (domain: DomainRow, lane: Lane) => {
    const signers = signersOf(domain, lane);
    return signers.length > 0 || lane === 'primary' ? signers : signersOf(domain, 'primary');
  };

  /** The content that the assignment has, which drops it, or the stored one. */
  function contentOf(assignment: Assignment): JobContent | ContentRow | null {
    const { message, content } = assignment;
    if (content === undefined) return tables.messages.content(message.content_id);
    assignment.content = undefined;
    return content;
  }

  const build: BuildJob = ({ site, slot }, assignment, entry) => {
    const { message, hosts, route, lane } = assignment;
    const domain = tables.domains.byId(message.domain_id);
    if (domain === null) return 'domain_deleted';
    const content = contentOf(assignment);
    if (content === null) return 'content_invalid';
    const sharedId = 'shared_id' in content ? content.shared_id : (content.sharedId ?? null);
    const shared = sharedId === null ? null : sharedContent(sharedId);
    if (sharedId !== null && shared === null) return 'content_invalid';
    const password = route === null ? undefined : passwords.get(route);
    const profile = site.profile();
    return {
      id: message.seq,
      slot: `${site.number}:${slot}`,
      hosts,
      port: route?.port ?? config.port,
      // Two routes may name the same host and so share a site, with different TLS modes.
      tls: route?.tls ?? profile.tls,
      tlsSource: route === null ? profileSource(profile) : 'route',
      chunking: profile.chunking,
      egress: jobEgress(entry),
      messagesPerConnection: profile.messagesPerConnection,
      idleMs: profile.idleMs,
      ...prepare(message, domain, content, signersIn(domain, lane)),
      ...(shared === null
        ? {}
        : { shared: { identity: { messageId: message.message_id, date: message.created_at }, ...shared } }),
      ...(route?.user === undefined || password === undefined
        ? {}
        : { auth: { user: route.user, password, allowUnverified: route.allowUnverifiedAuth } }),
    };
  };
  return { build, usePasswords };
}

/** For session records. The default mode has the source `default`, even where a profile sets it. */
function profileSource({ tls }: SiteProfile): TlsSource {
  return tls === 'opportunistic' ? 'default' : 'profile';
}

/** A shared content as it is stored. */
type EncodedSharedContent = Omit<SharedReference, 'identity'>;

/** Shared contents in memory, bytes as stored. */
const MAX_CACHED_BYTES = 32 * 1024 * 1024;

/** Reads shared contents into memory that all threads share, so that no job copies them. */
function createSharedContentReader(tables: Tables): (id: number) => EncodedSharedContent | null {
  const cache = new LRUCache<number, EncodedSharedContent>({
    maxSize: MAX_CACHED_BYTES,
    sizeCalculation: ({ bytes }) => bytes.byteLength,
  });
  return (id) => {
    const cached = cache.get(id);
    if (cached !== undefined) return cached;
    const row = tables.sharedContents.get(id);
    if (row === null) return null;
    const { encoding, size } = row;
    const bytes = new Uint8Array(new SharedArrayBuffer(row.bytes.byteLength));
    bytes.set(row.bytes);
    const content = { id, bytes, encoding, size };
    cache.set(id, content);
    return content;
  };
}

/** Throws an `OperatorFault` when a password file cannot be read. */
export function readPasswords({
  delivery,
  secondary,
}: {
  delivery: Pick<Config['delivery'], 'routes'>;
  secondary: Config['secondary'];
}): RoutePasswords {
  const read = (setting: string, file: string | undefined) =>
    file === undefined ? undefined : readPassword(setting, file);
  return {
    routes: delivery.routes.map(({ match, passwordFile }) =>
      read(`delivery.routes, passwordFile of "${match}"`, passwordFile),
    ),
    relay: secondary.type === 'relay' ? read('secondary.passwordFile', secondary.passwordFile) : undefined,
  };
}

function readPassword(setting: string, file: string): string {
  let password: string;
  try {
    password = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw fileFault(setting, file, error);
  }
  if (password === '') throw new OperatorFault(`${setting}: ${file} is empty`);
  return password;
}
