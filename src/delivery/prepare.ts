import { readFileSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import type { Config } from '../config/schema.ts';
import type { DeliveryRoute } from '../config/setting-types.ts';
import { fileFault, OperatorFault } from '../core/operator-fault.ts';
import { returnPathHost } from '../domains/names.ts';
import type { CopyDetails, MailKind, Tracking } from '../mail/content.ts';
import type { DkimSigner } from '../mail/dkim.ts';
import { feedbackIdOf } from '../mail/feedback-id.ts';
import { sentMailOf } from '../mail/sent-mail.ts';
import type { JobContent } from '../mail/stored-content.ts';
import type { AccountTokens, Tokens } from '../mail/tokens.ts';
import type { DomainRow, Lane } from '../store/domains/domains.ts';
import type { ContentRow, MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import type { EgressEntry } from './egress-pools.ts';
import type { DeliveryPaths } from './lanes.ts';
import type { Assignment, SiteProfile, SlotReservation } from './scheduling/site.ts';
import type { DeliveryJob, JobEgress, SharedReference, TlsSource } from './worker/protocol.ts';

/** The columns of a domain that determine its mail. */
type SendingDomain = Pick<DomainRow, 'name' | 'return_path' | 'tracking_host'>;

/**
 * Collects what a worker needs to compose and sign one copy: the sender, the return path, the recipient's links. Pure:
 * it reads no table and decides nothing.
 */
export type Prepare = (
  message: MessageRow,
  domain: SendingDomain,
  content: DeliveryJob['content'],
  signers: DkimSigner[],
) => Pick<DeliveryJob, 'content' | 'copy' | 'envelope' | 'signers'>;

/** The host of a domain's return path: its `return-a.` host, or the platform's, by configuration and SPF. */
export function returnHost(config: Config, domain: Pick<DomainRow, 'name' | 'return_path'>): string {
  const configured = config.delivery.returnPath === 'auto' ? domain.return_path : config.delivery.returnPath;
  return configured === 'platform' ? config.hostname : customerReturnHost(domain);
}

function customerReturnHost(domain: Pick<DomainRow, 'name'>): string {
  return returnPathHost(domain.name);
}

/**
 * The base URL of the links in a domain's mail: the domain's tracking host if it was verified to resolve to this server,
 * else `publicUrl`. The tracking host gets the scheme and the port of `publicUrl`, but no path.
 */
export function linkBase(publicUrl: string, domain: Pick<DomainRow, 'tracking_host'>): string {
  if (domain.tracking_host === null) return publicUrl;
  const { protocol, port } = new URL(publicUrl);
  return `${protocol}//${domain.tracking_host}${port === '' ? '' : `:${port}`}`;
}

/** The base URL of pages and images of an account: that of its oldest domain with a link host, else `publicUrl`. */
export function accountLinkBase(
  { domains }: Pick<Tables, 'domains'>,
  publicUrl: string,
  accountId: string,
): string {
  return linkBase(publicUrl, { tracking_host: domains.linkHost(accountId) });
}

export interface PrepareDeps {
  config: Config;
  tokens: Pick<Tokens, 'of'>;
  /** `public.url` with the actual port. */
  publicUrl: string;
}

/** The values that differ between copies: the links and addresses with the tokens of one message. */
export type DescribeCopy = (message: MessageRow, domain: SendingDomain) => CopyDetails;

/**
 * Reads no table. `tracking` is absent from copies of messages that track neither opens nor clicks. `publicUrl` is the
 * base of links unless the domain has a verified tracking host.
 */
export function createDescribeCopy({ config, tokens, publicUrl }: PrepareDeps): DescribeCopy {
  const trackingOf = (message: MessageRow, signed: AccountTokens, base: string): Tracking => ({
    linkPrefix: `${base}/c/`,
    clickSigner: message.track_clicks === 1 ? signed.click : null,
    messageId: message.message_id,
    pixelUrl: message.track_opens === 1 ? `${base}/o/${signed.openUrl(message.message_id)}.gif` : null,
  });

  return (message, domain) => {
    const id = message.message_id;
    const mail = sentMailOf(message);
    const signed = tokens.of(message.account_id);
    const base = linkBase(publicUrl, domain);
    return {
      kind: kindOf(message),
      recipient: message.recipient,
      unsubscribeUrl: `${base}/u/${signed.unsubscribeUrl(mail)}`,
      reportAbuseUrl: `${base}/r/${signed.reportUrl(mail)}`,
      viewUrl: `${base}/v/${signed.viewUrl(mail)}`,
      unsubscribeAddress: `${signed.unsubscribe(id)}@${customerReturnHost(domain)}`,
      signedId: signed.signedId(id),
      feedbackAddress: `${signed.feedback(id)}@${customerReturnHost(domain)}`,
      feedbackId: feedbackIdOf(
        {
          campaignId: message.campaign_id,
          subscriptionGroupId: message.subscription_group_id,
          accountId: message.account_id,
          stream: message.use_case,
        },
        config.hostname,
      ),
      ...(message.track_clicks + message.track_opens > 0
        ? { tracking: trackingOf(message, signed, base) }
        : {}),
    };
  };
}

/**
 * The envelope sender has the message's signed token as its local part; its host is that of `returnHost`, with the
 * settings at the time of the call.
 */
export function createPrepare(deps: PrepareDeps): Prepare {
  const { config, tokens } = deps;
  const describeCopy = createDescribeCopy(deps);
  return (message, domain, content, signers) => ({
    content,
    copy: describeCopy(message, domain),
    envelope: {
      from: `${tokens.of(message.account_id).returnPath(message.message_id)}@${returnHost(config, domain)}`,
      to: message.recipient,
    },
    signers,
  });
}

function kindOf({ use_case, essential }: MessageRow): MailKind {
  if (use_case === 'mk') return 'marketing';
  return essential === 1 ? 'essential' : 'transactional';
}

/** The keys that sign a domain's mail in a lane; empty when there are none yet. */
export type SignersOf = (domain: DomainRow, lane: Lane) => DkimSigner[];

/** Undefined: no authentication. */
export interface RoutePasswords {
  /** Passwords of the fixed routes, by position in `delivery.routes`. */
  routes: readonly (string | undefined)[];
  /** Password of the relay of the secondary lane. */
  relay: string | undefined;
}

export type BuildJob = ReturnType<typeof createJobBuilder>['build'];

/** Reads the password files of the routes: a file that cannot be read throws an `OperatorFault` here. */
export function createJobBuilder(
  { config: settings, tables }: { config: Pick<Config, 'delivery' | 'secondary'>; tables: Tables },
  {
    jobEgress,
    paths,
    prepare,
    signersOf,
  }: {
    /** What a worker needs of a source address. */
    jobEgress(entry: EgressEntry): JobEgress;
    paths: Pick<DeliveryPaths, 'relay'>;
    prepare: Prepare;
    signersOf: SignersOf;
  },
) {
  const config = settings.delivery;
  /** Messages in memory refer to routes that a reload has replaced. */
  const passwords = new WeakMap<DeliveryRoute, string>();
  /** Replaces the passwords of the configured routes; `given`: see `readPasswords`. */
  function usePasswords(given: RoutePasswords): void {
    for (const [index, route] of config.routes.entries()) {
      const password = given.routes[index];
      if (password !== undefined) passwords.set(route, password);
    }
    const relay = paths.relay();
    if (relay !== null && given.relay !== undefined) passwords.set(relay, given.relay);
  }
  usePasswords(readPasswords(settings));
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

  /**
   * Builds what a worker needs to send one message. Returns the reason when the message can never be sent. Throws when
   * something that the message needs cannot be read.
   */
  function build(
    { site, slot }: SlotReservation,
    assignment: Assignment,
    entry: EgressEntry,
  ): DeliveryJob | 'domain_deleted' | 'content_invalid' {
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
  }

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
