import type { Authenticator } from '../../accounts/authenticate.ts';
import type { Config } from '../../config/schema.ts';
import { postmark } from './postmark.ts';
import type { CompatProvider } from './provider.ts';
import type { CompatContext, CompatServices } from './sending.ts';

const PROVIDERS = { postmark };

/** The providers that `compat.enable` names. */
export function compatProviders(
  context: CompatContext & { config: Pick<Config, 'compat'> },
  services: CompatServices & { authenticator: Authenticator },
): CompatProvider[] {
  return context.config.compat.enable.map((name) => PROVIDERS[name](context, services));
}
