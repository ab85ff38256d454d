import { Counter, type Registry } from 'prom-client';
import type { Config } from '../../config/schema.ts';
import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { OnSuppressionChange, Recorder } from '../../events/record.ts';
import { createVisits } from '../../events/visits.ts';
import type { Tokens } from '../../mail/tokens.ts';
import type { Writer } from '../../store/database/writer.ts';
import type { Tables } from '../../store/tables.ts';
import { createReportAbuse, type Unsubscribing } from '../../suppression/unsubscribe.ts';

import type { ContextFor } from '../listener.ts';
import { challengeRoute } from './challenge.ts';
import type { PageHosts } from './own-host.ts';
import { reportRoute } from './report.ts';
import { createPublicServer } from './server.ts';
import { type SignUpDeps, signUpRoutes } from './sign-up.ts';
import { stsPolicyRoute } from './sts-policy.ts';
import { clickRoute, openRoute } from './tracking.ts';
import { unsubscribeRoute } from './unsubscribe.ts';

/** The public pages: their routes, their listeners, and visits that wait to be recorded. */
export interface PublicPages {
  /** Binds `public.listen`; rejects when the address is not available. */
  listen(): Promise<void>;
  address(): { host: string; port: number } | null;
  /** The bound address of `public.tls.listen`; null when that is off. */
  secureAddress(): { host: string; port: number } | null;
  /** `public.url`; the bound address if that has port 0. */
  url(): string;
  close(graceMs: number): Promise<void>;
}

export interface PublicPagesDeps {
  config: Pick<Config, 'public' | 'hostname'>;
  clock: Clock;
  log: Log;
  registry: Registry;
  tables: Tables;
  writer: Writer;
  recorder: Recorder;
  tokens: Tokens;
  unsubscribing: Unsubscribing;
  audience: SignUpDeps['audience'];
  accept: SignUpDeps['accept'];
  storageRefusal: SignUpDeps['storageRefusal'];
  onSuppressionChange: OnSuppressionChange;
  /** Whether a host is the link host of a verified customer domain. */
  isCustomerHost(host: string): boolean;
  /** The MTA-STS policy of the domain with this policy host; null: none. */
  stsPolicyOf(host: string): string | null;
  /** The account whose domain has this link host; null: none. */
  ownerOfHost(host: string): string | null;
  /** Certificates of the listener of `public.tls`; null: this daemon does not terminate TLS. */
  certificates: { contextFor: ContextFor; challengeAnswer(token: string): string | null } | null;
}

/**
 * Binds nothing before `listen`; registers `postrider_visits_total`. Visits wait in memory until they are written, at
 * the latest in `close`, after the listeners.
 */
export function createPublicPages(deps: PublicPagesDeps): PublicPages {
  const { config, log, registry, tokens, certificates } = deps;
  const counted = new Counter({
    name: 'postrider_visits_total',
    help: 'Opens and clicks, by result.',
    labelNames: ['kind', 'fate'],
    registers: [registry],
  });
  const visits = createVisits(deps, {
    recorder: deps.recorder,
    observe: (kind, fate) => counted.inc({ kind, fate }),
  });
  const hosts: PageHosts = { publicUrl: url, hostname: config.hostname, ownerOfHost: deps.ownerOfHost };
  const server = createPublicServer({
    config: config.public,
    ...(certificates === null
      ? {}
      : { secure: { listen: config.public.tls.listen, contextFor: certificates.contextFor } }),
    log,
    registry,
    routes: [
      openRoute({ tokens, visits }),
      clickRoute({ tokens, visits, isCustomerHost: deps.isCustomerHost }),
      unsubscribeRoute({ ...deps, hosts }),
      ...signUpRoutes({ ...deps, publicUrl: url }),
      reportRoute({ ...deps, hosts, reportAbuse: createReportAbuse(deps, deps) }),
      ...(certificates === null ? [] : [challengeRoute(certificates.challengeAnswer)]),
      stsPolicyRoute(deps.stsPolicyOf),
    ],
  });

  function url(): string {
    const configured = new URL(config.public.url);
    const bound = server.address();
    if (configured.port !== '0' || bound === null) return config.public.url;
    return `http://${bound.host.includes(':') ? `[${bound.host}]` : bound.host}:${bound.port}`;
  }

  return {
    listen: server.listen,
    address: server.address,
    secureAddress: server.secureAddress,
    url,
    close: async (graceMs) => {
      await server.close(graceMs);
      await visits.close();
    },
  };
}
