import { Counter, type Registry } from 'prom-client';
import type { Config } from '../../config/schema.ts';
import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { OnSuppressionChange, Recorder } from '../../events/record.ts';
import { createVisits } from '../../events/visits.ts';
import type { Tokens } from '../../mail/tokens.ts';
import type { Tables } from '../../store/tables.ts';
import type { Writer } from '../../store/writer.ts';
import { createReportAbuse } from '../../suppression/report-abuse.ts';
import type { Unsubscribing } from '../../suppression/unsubscribe.ts';
import type { ContextFor } from '../listener.ts';
import { challengePage } from './challenge.ts';
import { reportPage } from './report.ts';
import { createPublicServer } from './server.ts';
import { clickPage, openPage } from './tracking.ts';
import { unsubscribePage } from './unsubscribe.ts';

/** The public pages with their listener, and the visits that wait to be recorded. */
export interface PublicSide {
  /** Binds `public.listen`; rejects when the address cannot be bound. */
  listen(): Promise<void>;
  address(): { host: string; port: number } | null;
  /** Of `public.tls.listen`; null when that is off. */
  secureAddress(): { host: string; port: number } | null;
  /** `public.url`, or the bound address when its port is 0. */
  url(): string;
  close(graceMs: number): Promise<void>;
}

export interface PublicSideDeps {
  config: Pick<Config, 'public'>;
  clock: Clock;
  log: Log;
  registry: Registry;
  tables: Tables;
  writer: Writer;
  recorder: Recorder;
  tokens: Tokens;
  unsubscribing: Unsubscribing;
  onSuppressionChange: OnSuppressionChange;
  /** Whether a host is the link host of a customer's proven domain. */
  isCustomerHost(host: string): boolean;
  /** For `public.tls`; null: no HTTPS listener. */
  certificates: { contextFor: ContextFor; challengeAnswer(token: string): string | null } | null;
}

export function createPublicSide(deps: PublicSideDeps): PublicSide {
  const { config, log, registry, tokens, certificates } = deps;
  const counted = new Counter({
    name: 'postrider_visits_total',
    help: 'Opens and clicks, by what became of them.',
    labelNames: ['kind', 'fate'],
    registers: [registry],
  });
  const visits = createVisits({ ...deps, observe: (kind, fate) => counted.inc({ kind, fate }) });
  const server = createPublicServer({
    config: config.public,
    ...(certificates === null
      ? {}
      : { secure: { listen: config.public.tls.listen, contextFor: certificates.contextFor } }),
    log,
    registry,
    pages: [
      openPage({ tokens, visits }),
      clickPage({ tokens, visits, isCustomerHost: deps.isCustomerHost }),
      unsubscribePage(deps),
      reportPage({ ...deps, reportAbuse: createReportAbuse(deps) }),
      ...(certificates === null ? [] : [challengePage(certificates.challengeAnswer)]),
    ],
  });

  return {
    listen: server.listen,
    address: server.address,
    secureAddress: server.secureAddress,
    url: () => {
      const url = new URL(config.public.url);
      const bound = server.address();
      if (url.port !== '0' || bound === null) return config.public.url;
      return `http://${bound.host.includes(':') ? `[${bound.host}]` : bound.host}:${bound.port}`;
    },
    close: async (graceMs) => {
      await server.close(graceMs);
      await visits.close();
    },
  };
}
