import { Counter } from 'prom-client';
import type { Audience } from '../audience/service.ts';
import { createCertificates } from '../certificates/keeper.ts';
import { programVersion } from '../config/version.ts';
import { createDescribeCopy, type DescribeCopy } from '../delivery/prepare.ts';
import type { Resolver } from '../dns/resolver.ts';
import { stsPolicyDomain } from '../domains/names.ts';
import { createLinkHosts } from '../domains/platform/link-hosts.ts';
import { platformOf } from '../domains/platform/platform.ts';
import type { OnSuppressionChange, Recorder } from '../events/record.ts';
import { createPublicPages } from '../http/public/public.ts';
import type { Inbound } from '../inbound/inbound.ts';
import { createMediaFiles } from '../media/files.ts';
import { createMedia } from '../media/media.ts';
import type { Acceptance } from '../sending/accept.ts';
import type { Pressure } from '../sending/pressure.ts';
import { createUnsubscribing } from '../suppression/unsubscribe.ts';
import type { TemplateThreads } from '../templates/thread/threads.ts';
import { GRACE_MS, logListener } from './context.ts';
import type { DaemonBase } from './storage.ts';

/** What sign-up forms and archives need of the send path. */
interface PageSending {
  accept: Acceptance['accept'];
  threads: TemplateThreads;
  storageRefusal: Pressure['storageRefusal'];
}

interface PublicPagesParts {
  resolver: Resolver;
  recorder: Recorder;
  onSuppressionChange: OnSuppressionChange;
  audience: Audience;
  inbound: Inbound;
}

/** The public pages and what other parts share with them. */
export type DaemonPublicPages = Awaited<ReturnType<typeof startPublicPages>>;

/** Starts the public pages and the certificates of their hosts. */
export async function startPublicPages(
  base: DaemonBase,
  { resolver, recorder, onSuppressionChange, audience, inbound }: PublicPagesParts,
) {
  const { config, monotonic, log, registry, tables, tokens, onStop } = base;
  const linkHosts = createLinkHosts({ config, tables, monotonic }, resolver);
  const orders = new Counter({
    name: 'postrider_certificate_orders_total',
    help: 'Certificate orders by outcome.',
    labelNames: ['outcome'],
    registers: [registry],
  });
  const certificates =
    config.public.tls.listen === 'off'
      ? null
      : createCertificates(base, {
          resolver,
          userAgent: `Postrider/${programVersion()}`,
          ownHost: linkHosts.publicHost,
          isOurs: (host) => linkHosts.statusOf(host) !== null,
          ownerOf: linkHosts.ownerOf,
          leadsHere: (host, kind) => linkHosts.leadsHere(host, kind === 'renewal'),
          observe: (outcome) => orders.inc({ outcome }),
        });
  onStop(async () => {
    // The certificates would otherwise wait for DNS lookups of the link hosts.
    linkHosts.close();
    await certificates?.stop();
  });

  const unsubscribing = createUnsubscribing(base, { recorder, onSuppressionChange });
  const media = createMedia(base);
  media.background.start();
  onStop(() => media.background.stop());
  const mediaFiles = createMediaFiles(base);
  let sending: PageSending | null = null;
  const describeCopy: DescribeCopy = (message, domain) =>
    // The port is known when a page is requested.
    createDescribeCopy({ config, tokens, publicUrl: publicPages.url() })(message, domain);
  const publicPages = createPublicPages(base, {
    describeCopy,
    audience,
    accept: () => sending?.accept ?? null,
    templateThreads: () => sending?.threads ?? null,
    storageRefusal: (accountId) => sending?.storageRefusal(accountId) ?? null,
    recorder,
    tokens,
    mediaFiles,
    inboundFile: inbound.linked,
    unsubscribing,
    onSuppressionChange,
    isCustomerHost: (host) => linkHosts.statusOf(host) === 'proven',
    stsPolicyOf: (host) => {
      const domain = stsPolicyDomain(host);
      const isServed = domain !== null && tables.domains.isRegistered(domain);
      return isServed ? (platformOf(config).stsPolicy?.text ?? null) : null;
    },
    ownerOfHost: linkHosts.ownerOf,
    certificates,
  });
  await publicPages.listen();
  onStop(() => publicPages.close(GRACE_MS));
  logListener(log, 'public', publicPages.address());
  logListener(log, 'public.tls', publicPages.secureAddress());
  certificates?.start();
  return {
    publicPages,
    linkHosts,
    unsubscribing,
    media,
    mediaFiles,
    /** Sets the send path, which is created later: until then, sign-up forms are not accepted, and Liquid is not rendered. */
    setSending: (parts: PageSending): void => {
      sending = parts;
    },
  };
}
