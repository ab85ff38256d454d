import { Counter } from 'prom-client';
import { createArchive } from '../../campaigns/archive.ts';
import type { Config } from '../../config/schema.ts';
import type { DescribeCopy } from '../../delivery/prepare.ts';
import type { OnSuppressionChange, Recorder } from '../../events/record.ts';
import { createVisits } from '../../events/visits.ts';
import type { Inbound } from '../../inbound/inbound.ts';
import type { Tokens } from '../../mail/tokens.ts';
import type { MediaFiles } from '../../media/files.ts';
import type { Context } from '../../store/context.ts';
import { createPreferences } from '../../suppression/preferences.ts';
import { createReportAbuse, type Unsubscribing } from '../../suppression/unsubscribe.ts';
import type { TemplateThreads } from '../../templates/thread/threads.ts';
import type { ContextFor } from '../listener.ts';
import { archiveRoute } from './archive.ts';
import { inboundFileRoute } from './inbound-file.ts';
import { plainLook } from './look.ts';
import { mediaRoute } from './media.ts';
import type { PageHosts } from './own-host.ts';
import { unknownLinkPage } from './plain-pages.ts';
import { preferencesRoute } from './preferences.ts';
import { reportRoute } from './report.ts';
import { COMMON_HEADERS, type PublicRoute } from './response.ts';
import { createPublicServer } from './server.ts';
import { type SignUpServices, signUpRoutes } from './sign-up.ts';
import { clickRoute, openRoute } from './tracking.ts';
import { unsubscribeRoute } from './unsubscribe.ts';
import { viewRoute } from './view.ts';

/** What the public pages show and record. */
export interface PublicServices extends Pick<SignUpServices, 'audience' | 'accept' | 'storageRefusal'> {
  recorder: Recorder;
  tokens: Tokens;
  mediaFiles: MediaFiles;
  inboundFile: Inbound['linked'];
  describeCopy: DescribeCopy;
  /** Renders Liquid of archived campaigns; null: it has not started. */
  templateThreads(): TemplateThreads | null;
  unsubscribing: Unsubscribing;
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

type PublicContext = Pick<Context, 'clock' | 'log' | 'reader' | 'registry' | 'tables' | 'writer'> & {
  config: Pick<Config, 'public' | 'hostname'>;
};

/**
 * The public pages: their routes, their listeners, and visits that wait to be recorded. Binds nothing before `listen`;
 * registers `postrider_visits_total`. Visits wait in memory until they are written, at the latest in `close`, after the
 * listeners.
 */
export function createPublicPages(context: PublicContext, services: PublicServices) {
  const { config, log, registry } = context;
  const { tokens, certificates, isCustomerHost, ownerOfHost } = services;
  const counted = new Counter({
    name: 'postrider_visits_total',
    help: 'Opens and clicks, by result.',
    labelNames: ['kind', 'fate'],
    registers: [registry],
  });
  const visits = createVisits(context, {
    recorder: services.recorder,
    observe: (kind, fate) => counted.inc({ kind, fate }),
  });
  const hosts: PageHosts = { publicUrl: url, hostname: config.hostname, ownerOfHost };
  const server = createPublicServer({
    config: config.public,
    ...(certificates === null
      ? {}
      : { secure: { listen: config.public.tls.listen, contextFor: certificates.contextFor } }),
    log,
    registry,
    routes: [
      openRoute({ tokens, visits }),
      clickRoute({ tokens, visits }, isCustomerHost),
      unsubscribeRoute(context, { ...services, hosts }),
      ...signUpRoutes(context, { ...services, publicUrl: url }),
      preferencesRoute(context, {
        ...services,
        tokens,
        hosts,
        preferences: createPreferences(context, services),
      }),
      mediaRoute({ files: services.mediaFiles, hosts }),
      inboundFileRoute({ linked: services.inboundFile }),
      viewRoute(context, { tokens, hosts, describeCopy: services.describeCopy }),
      archiveRoute(context, { archive: createArchive(context, services.templateThreads), hosts }),
      reportRoute(context, { tokens, hosts, reportAbuse: createReportAbuse(context, services) }),
      ...(certificates === null ? [] : [challengeRoute(certificates.challengeAnswer)]),
      stsPolicyRoute(services.stsPolicyOf),
    ],
  });

  /** `public.url`; the bound address if that has port 0. */
  function url(): string {
    const configured = new URL(config.public.url);
    const bound = server.address();
    if (configured.port !== '0' || bound === null) return config.public.url;
    return `http://${bound.host.includes(':') ? `[${bound.host}]` : bound.host}:${bound.port}`;
  }

  return {
    ...server,
    url,
    close: async (graceMs: number): Promise<void> => {
      await server.close(graceMs);
      await visits.close();
    },
  };
}

/**
 * `/.well-known/acme-challenge/<token>`: the validation requests of a certificate authority (RFC 8555 §8.3) while an
 * order is open. `keyAuthorizationOf` returns null for unknown tokens.
 */
function challengeRoute(keyAuthorizationOf: (token: string) => string | null): PublicRoute {
  return {
    name: '.well-known/acme-challenge',
    methods: ['GET'],
    handle: ({ token, acceptLanguage }) => {
      const body = keyAuthorizationOf(token);
      if (body === null) return unknownLinkPage(plainLook(acceptLanguage));
      return {
        status: 200,
        headers: { ...COMMON_HEADERS, 'Content-Type': 'application/octet-stream' },
        body,
      };
    },
  };
}

/** `/.well-known/mta-sts.txt` (RFC 8461 §3.3). `policyOf` returns null for hosts without a policy. */
function stsPolicyRoute(policyOf: (host: string) => string | null): PublicRoute {
  return {
    name: '.well-known',
    methods: ['GET'],
    handle: ({ host, token, acceptLanguage }) => {
      const policy = token === 'mta-sts.txt' ? policyOf(host) : null;
      if (policy === null) return unknownLinkPage(plainLook(acceptLanguage));
      return {
        status: 200,
        headers: { ...COMMON_HEADERS, 'Content-Type': 'text/plain; charset=utf-8' },
        body: policy,
      };
    },
  };
}
