import { createHash } from 'node:crypto';
import type { Config } from '../../config/schema.ts';
import { DAY } from '../../core/clock.ts';
import { normalizeDomain } from '../../mail/address.ts';
import { type RetryTimes, retirementMs } from '../rotation.ts';
import type { EgressAddressSetting, SecondarySetting } from './egress-addresses.ts';

/** `listen`: `off`, or one or several addresses with port. */
export type NameServerSetting = Pick<
  Config['dns']['server'],
  'listen' | 'nameServers' | 'addresses' | 'contact'
>;

/** `enforced`: p=quarantine or p=reject. `any`: also p=none if it has an address for reports. */
export type DmarcRequirement = Config['verification']['dmarcPolicy'];

/** The settings that affect the DNS records of domains, and the platform's host names. */
export interface PlatformOptions extends Pick<Config, 'hostname' | 'verification'> {
  delivery: {
    egress: readonly EgressAddressSetting[];
    returnPath: Config['delivery']['returnPath'];
    retry?: RetryTimes;
  };
  secondary: SecondarySetting;
  public: { url: string; tls?: { listen: string } };
  mx?: { tls: { certificateFile?: string | undefined } };
  dns?: { server: NameServerSetting };
  domains?: Config['domains'];
}

/** The settings that determine which records are recommended and which keys sign. */
export interface KeyPolicy {
  /** Age of a key at which it is replaced, ms; null: never. */
  rotationMs: number | null;
  ed25519: boolean;
}

export type Platform = ReturnType<typeof platformOf>;

/** A live view of `options`, which a reload of the configuration changes. */
export function platformOf(options: PlatformOptions) {
  return {
    get hostname() {
      return options.hostname;
    },
    get egress() {
      return options.delivery.egress;
    },
    get secondary() {
      return options.secondary;
    },
    get returnPath() {
      return options.delivery.returnPath;
    },
    /** Base address of links. */
    get publicUrl() {
      return options.public.url;
    },
    /** The DMARC policies that pass. */
    get dmarcPolicy() {
      return options.verification.dmarcPolicy;
    },
    /** The MTA-STS policy of return paths; null: none is served. */
    get stsPolicy() {
      return stsPolicyOf(options);
    },
    /** The built-in name server of the platform's zone; null: the operator publishes the zone elsewhere. */
    get nameServer() {
      return nameServerOf(options);
    },
    /** The keys of domains in the platform's zone, and when they are replaced. */
    get keyPolicy() {
      return keyPolicyOf(options);
    },
    /** Time for which a retired key stays published, ms. */
    get retirementMs() {
      return retirementMs(options.delivery.retry);
    },
    /** Whether messages also have a signature of the platform. */
    get signs() {
      return options.domains?.platformSignature ?? false;
    },
  };
}

function nameServerOf({ dns }: PlatformOptions): NameServerSetting | null {
  return dns === undefined || dns.server.listen === 'off' ? null : dns.server;
}

/** At least every six months, as M3AAWG recommends. */
const DEFAULT_ROTATION_MS = 180 * DAY;

/** By default keys are replaced only where the platform's zone is served here: elsewhere the operator must publish it. */
function keyPolicyOf(options: PlatformOptions): KeyPolicy {
  const { dkimRotation, ed25519 = false } = options.domains ?? {};
  const rotation = dkimRotation ?? (nameServerOf(options) === null ? 'never' : DEFAULT_ROTATION_MS);
  return { rotationMs: rotation === 'never' ? null : rotation, ed25519 };
}

/** A week: the least that RFC 8461 §3.2 suggests. */
const MAX_AGE_SECONDS = 604_800;

/**
 * The MTA-STS policy (RFC 8461) of the domains' return paths, whose MX host is the platform: `text` is the content of
 * `/.well-known/mta-sts.txt`, `id` changes with it. One policy is served for all of them, and its id is in one record of
 * the platform's zone, to which the record of each domain is an alias (RFC 8461 §8.2). Null without `public.tls`: no
 * policy is served then. Senders deliver only to a certificate of a trusted authority, so the policy is in testing mode
 * while the MX listener uses a generated one.
 */
function stsPolicyOf({ hostname, public: pages, mx }: PlatformOptions): { text: string; id: string } | null {
  if (pages.tls === undefined || pages.tls.listen === 'off') return null;
  const mode = mx?.tls.certificateFile === undefined ? 'testing' : 'enforce';
  const lines = ['version: STSv1', `mode: ${mode}`, `mx: ${hostname}`, `max_age: ${MAX_AGE_SECONDS}`];
  const text = lines.map((line) => `${line}\r\n`).join('');
  // RFC 8461 §3.1: at most 32 letters and digits.
  return { text, id: createHash('sha256').update(text).digest('hex').slice(0, 20) };
}

/** The host whose SPF record lists every address that mail is sent from. */
export function spfHost({ hostname }: Pick<Platform, 'hostname'>): string {
  return `spf.${hostname}`;
}

/** The target of the domains' link hosts. */
export function trackHost({ hostname }: Pick<Platform, 'hostname'>): string {
  return `track.${hostname}`;
}

/** The name whose TXT record has the id of the MTA-STS policy. */
export function stsRecordHost({ hostname }: Pick<Platform, 'hostname'>): string {
  return `mta-sts-id.${hostname}`;
}

/** The host of the key of one domain's secondary lane. */
export function altDkimHost({ hostname }: Pick<Platform, 'hostname'>, altDomainId: string): string {
  return `${altDomainId}.dkim.${hostname}`;
}

/** The host of `public.url`; null when it is not a name that can have a certificate. */
export function publicHost({ publicUrl }: Pick<Platform, 'publicUrl'>): string | null {
  return normalizeDomain(new URL(publicUrl).hostname);
}
