import type { Config } from '../config/schema.ts';
import { abortAfter } from '../core/abort.ts';
import { type Clock, SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { Random } from '../core/random.ts';
import { createDnsView } from '../dns/dns-view.ts';
import { createResolver } from '../dns/resolver.ts';
import { checkHostConfig, checkHostDns, type HostWarning } from '../domains/platform/host-checks.ts';

const MAX_DURATION_MS = 15 * SECOND;

/**
 * Logs a warning for each problem of the host. Checks that need DNS run in the background; the returned function cancels
 * them.
 */
export function reportHost(config: Config, deps: { clock: Clock; random: Random; log: Log }): () => void {
  const { log } = deps;
  const warn = (warnings: HostWarning[]) => {
    for (const { key, message } of warnings) log.warn({ key }, message);
  };
  warn(checkHostConfig(config));
  const cancel = new AbortController();
  const resolver = createResolver({ ...config.dns, ...deps });
  const signal = abortAfter(MAX_DURATION_MS, cancel.signal);
  checkHostDns(createDnsView(resolver, { signal }), config)
    .then(
      (warnings) => {
        if (!cancel.signal.aborted) warn(warnings);
      },
      (error: unknown) => log.error({ err: error }, 'checks of the host failed'),
    )
    .finally(() => resolver.close());
  return () => cancel.abort();
}
