import { DAY } from '../../core/clock.ts';
import { normalizeDomain } from '../../mail/address.ts';
import { type RetryTimes, retirementMs } from '../rotation.ts';
import type { EgressAddressSetting, SecondarySetting } from './egress-addresses.ts';
import { type ServedStsPolicy, stsPolicyOf } from './sts-policy.ts';

/** The part of the configuration that affects the DNS records of domains, and the platform's host names. */
export interface Platform {
  hostname: string;
  egress: readonly EgressAddressSetting[];
  secondary: SecondarySetting;
  returnPath: 'customer' | 'auto' | 'platform';
  /** Base address of links. */
  publicUrl: string;
  /** The DMARC policies that pass. */
  dmarcPolicy: DmarcRequirement;
  /** The MTA-STS policy of return paths; null: none is served. */
  stsPolicy: ServedStsPolicy | null;
  /** The built-in name server of the platform's zone; null: the operator publishes the zone elsewhere. */
  nameServer: NameServerSetting | null;
  /** The keys of domains in the platform's zone, and when they are replaced. */
  keyPolicy: KeyPolicy;
  /** Time for which a retired key stays published, ms. */
  retirementMs: number;
  /** Whether messages also have a signature of the platform. */
  signs: boolean;
}

/** The settings that determine which records are recommended and which keys sign. */
export interface KeyPolicy {
  /** Age of a key at which it is replaced, ms; null: never. */
  rotationMs: number | null;
  ed25519: boolean;
}

export interface NameServerSetting {
  /** `off`, or one or several addresses with port. */
  listen: string | readonly string[];
  /** The names of the zone's name servers, with their addresses where the platform's zone has these. */
  nameServers: readonly { name: string; addresses: readonly string[] }[];
  /** The addresses of the platform's host name. */
  addresses: readonly string[];
  /** The mail address in the SOA record. */
  contact?: string | undefined;
}

export interface KeySettings {
  /** In ms; undefined: depends on whether the zone is served here. */
  dkimRotation?: number | 'never' | undefined;
  ed25519: boolean;
  platformSignature: boolean;
}

/** `enforced`: p=quarantine or p=reject. `any`: also p=none if it has an address for reports. */
export type DmarcRequirement = 'enforced' | 'any';

/** The options of the configuration (config/schema.ts). */
export interface PlatformOptions {
  hostname: string;
  delivery: {
    egress: readonly EgressAddressSetting[];
    returnPath: Platform['returnPath'];
    retry?: RetryTimes;
  };
  secondary: SecondarySetting;
  public: { url: string; tls?: { listen: string } };
  mx?: { tls: { certificateFile?: string | undefined } };
  verification: { dmarcPolicy: DmarcRequirement };
  dns?: { server: NameServerSetting };
  domains?: KeySettings;
}

/** At least every six months, as M3AAWG recommends. */
const DEFAULT_ROTATION_MS = 180 * DAY;

/** By default keys are replaced only where the platform's zone is served here: elsewhere the operator must publish it. */
function keyPolicyOf({ domains }: PlatformOptions, isServed: boolean): KeyPolicy {
  const rotation = domains?.dkimRotation ?? (isServed ? DEFAULT_ROTATION_MS : 'never');
  return { rotationMs: rotation === 'never' ? null : rotation, ed25519: domains?.ed25519 ?? false };
}

function nameServerOf({ dns }: PlatformOptions): NameServerSetting | null {
  return dns === undefined || dns.server.listen === 'off' ? null : dns.server;
}

/** A live view of `options`, which a reload of the configuration changes. */
export function platformOf(options: PlatformOptions): Platform {
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
    get publicUrl() {
      return options.public.url;
    },
    get dmarcPolicy() {
      return options.verification.dmarcPolicy;
    },
    get stsPolicy() {
      return stsPolicyOf(options);
    },
    get nameServer() {
      return nameServerOf(options);
    },
    get keyPolicy() {
      return keyPolicyOf(options, nameServerOf(options) !== null);
    },
    get retirementMs() {
      return retirementMs(options.delivery.retry);
    },
    get signs() {
      return options.domains?.platformSignature ?? false;
    },
  };
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
