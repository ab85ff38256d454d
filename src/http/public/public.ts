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
import { challengePlace } from './challenge.ts';
import { reportPlace } from './report.ts';
import { createPublicServer } from './server.ts';
import { clickPlace, openPlace } from './tracking.ts';
import { unsubscribePlace } from './unsubscribe.ts';

/** The public side as a whole: its places, its listener, and the visits that wait to be recorded. */
export interface PublicSide {
  /** Binds `public.listen`; rejects when the address cannot be had. */
  listen(): Promise<void>;
  address(): { host: string; port: number } | null;
  /** Of `public.tls.listen`; null when that is off. */
  secureAddress(): { host: string; port: number } | null;
  /** `public.url`, or where it really listens when that names no port. */
  url(): string;
  close(graceMs: number): Promise<void>;
}

export interface PublicSideSettings {
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
  /** Of `public.tls`; null: somebody else ends TLS, or nobody. */
  certificates: { contextFor: ContextFor; challengeAnswer(token: string): string | null } | null;
}

export function createPublicSide(settings: PublicSideSettings): PublicSide {
  const { config, log, registry, tokens, certificates } = settings;
  const counted = new Counter({
    name: 'postrider_visits_total',
    help: 'Opens and clicks, by what became of them.',
    labelNames: ['kind', 'fate'],
    registers: [registry],
  });
  const visits = createVisits({ ...settings, observe: (kind, fate) => counted.inc({ kind, fate }) });
  const server = createPublicServer({
    config: config.public,
    ...(certificates === null
      ? {}
      : { secure: { listen: config.public.tls.listen, contextFor: certificates.contextFor } }),
    log,
    registry,
    places: [
      openPlace({ tokens, visits }),
      clickPlace({ tokens, visits, isCustomerHost: settings.isCustomerHost }),
      unsubscribePlace(settings),
      reportPlace({ ...settings, reportAbuse: createReportAbuse(settings) }),
      ...(certificates === null ? [] : [challengePlace(certificates.challengeAnswer)]),
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
