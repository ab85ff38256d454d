import { normalizeDomain } from '../../mail/address.ts';
import type { EgressSetting, SecondarySetting } from './egress-addresses.ts';

/** The part of the configuration that affects the DNS records of domains, and the platform's host names. */
export interface Platform {
  hostname: string;
  egress: readonly EgressSetting[];
  secondary: SecondarySetting;
  returnPath: 'customer' | 'auto' | 'platform';
  /** Base address of links. */
  publicUrl: string;
  /** Which DMARC policies pass. */
  dmarcPolicy: DmarcRequirement;
}

/** `enforced`: p=quarantine or p=reject. `any`: also p=none if it has an address for reports. */
export type DmarcRequirement = 'enforced' | 'any';

/** The options of the configuration (config/schema.ts). */
export interface PlatformOptions {
  hostname: string;
  delivery: { egress: readonly EgressSetting[]; returnPath: Platform['returnPath'] };
  secondary: SecondarySetting;
  public: { url: string };
  verification: { dmarcPolicy: DmarcRequirement };
}

/** A view: a reload of the configuration changes `options`. */
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
  };
}

/** Lists every address that mail is sent from. */
export function spfHost({ hostname }: Pick<Platform, 'hostname'>): string {
  return `spf.${hostname}`;
}

/** The target of the domains' link hosts. */
export function trackHost({ hostname }: Pick<Platform, 'hostname'>): string {
  return `track.${hostname}`;
}

/** Has the key of one domain's secondary lane. */
export function altDkimHost({ hostname }: Pick<Platform, 'hostname'>, altDomainId: string): string {
  return `${altDomainId}.dkim.${hostname}`;
}

/** The host of `public.url`; null when it is not a name that can have a certificate. */
export function publicHost({ publicUrl }: Pick<Platform, 'publicUrl'>): string | null {
  return normalizeDomain(new URL(publicUrl).hostname);
}
