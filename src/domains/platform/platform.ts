import type { EgressSetting, SecondarySetting } from './egress-addresses.ts';

/**
 * What domains need to know of the platform they are set up on: the part of the configuration that shows in
 * DNS, and the names that follow from it.
 */
export interface Platform {
  hostname: string;
  egress: readonly EgressSetting[];
  secondary: SecondarySetting;
  returnPath: 'customer' | 'auto' | 'platform';
  /** Base address of links. */
  publicUrl: string;
  /** Which DMARC policies count as set up. */
  dmarcPolicy: DmarcRequirement;
}

/** `enforced`: p=quarantine or p=reject. `any`: p=none as well, when it names an address for reports. */
export type DmarcRequirement = 'enforced' | 'any';

/** The settings as config/schema.ts has them. */
export interface PlatformSettings {
  hostname: string;
  delivery: { egress: readonly EgressSetting[]; returnPath: Platform['returnPath'] };
  secondary: SecondarySetting;
  public: { url: string };
  verification: { dmarcPolicy: DmarcRequirement };
}

export function platformOf(settings: PlatformSettings): Platform {
  return {
    hostname: settings.hostname.toLowerCase().replace(/\.$/, ''),
    egress: settings.delivery.egress,
    secondary: settings.secondary,
    returnPath: settings.delivery.returnPath,
    publicUrl: settings.public.url,
    dmarcPolicy: settings.verification.dmarcPolicy,
  };
}

/** Lists every address we send from. */
export function spfHost({ hostname }: Pick<Platform, 'hostname'>): string {
  return `spf.${hostname}`;
}

/** Where customers' link hosts point. */
export function trackHost({ hostname }: Pick<Platform, 'hostname'>): string {
  return `track.${hostname}`;
}

/** Holds the key of one customer's secondary lane. */
export function altDkimHost({ hostname }: Pick<Platform, 'hostname'>, altDomainId: string): string {
  return `${altDomainId}.dkim.${hostname}`;
}
