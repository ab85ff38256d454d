import type { Config } from '../../config/schema.ts';
import { type Clock, SECOND } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { createClassifier } from '../../mail/classify/classifier.ts';
import type { Classify } from '../../mail/classify/classify.ts';
import { createUnclassifiedReplies } from '../../mail/classify/unclassified.ts';
import type { Writer } from '../../store/database/writer.ts';
import type { Tables } from '../../store/tables.ts';
import { createOpenConnections } from '../scheduling/open-connections.ts';
import { createSites, type Sites } from '../scheduling/sites.ts';
import { createFeedback, type Feedback } from './feedback.ts';
import { createHostAnswers } from './host-answers.ts';
import type { LimitedSite } from './metrics.ts';
import { type SlowSite, slowSites } from './site-limits.ts';
import { createSiteStore, type SiteStore } from './site-store.ts';
import { storeUnclassified } from './unclassified-store.ts';

/** The sites with their limits, and what replies change about them. */
export interface Shaping {
  sites: Sites;
  /** Classifies replies, with the rules of the configuration. */
  classify: Classify;
  feedback: Feedback;
  /** Stores what has changed. Call about once per second. Never rejects. */
  write(): Promise<void>;
  /** The limits in force at the sites in memory. */
  limits(): LimitedSite[];
  /** Sites that asked to send less and have had one connection for hours, at most 20. */
  slow(): SlowSite[];
}

export interface ShapingDeps {
  /** Read at each use: a reload changes it. */
  config: Pick<Config['delivery'], 'shaping' | 'replies' | 'retry'>;
  clock: Clock;
  monotonic: Clock;
  log: Log;
  tables: Tables;
  writer: Writer;
  /** Whether the operator has paused a site. Default: never. */
  isPaused?(site: { key: string; pool: string }): boolean;
  /** Idle connections that the workers keep. */
  idleConnections: number;
}

const MAX_FIRST_SUSPENSION_MS = 60 * SECOND;

/**
 * Reads the stored limits of sites now. Starts no timer: changed limits and replies without known wording are stored by
 * `write` only.
 */
export function createShaping(deps: ShapingDeps): Shaping {
  const { config, clock, monotonic, log, tables, writer } = deps;
  const hostAnswers = createHostAnswers();
  const sites = createSites({
    clock: monotonic,
    wallClock: clock,
    memoryOf: (key) => store.memoryOf(key),
    get shaping() {
      return config.shaping;
    },
    get firstSuspensionMs() {
      return Math.min(MAX_FIRST_SUSPENSION_MS, config.retry.first);
    },
    isPaused: (site) => deps.isPaused?.(site) === true,
    openConnections: createOpenConnections({ limit: deps.idleConnections, clock: monotonic }),
    hostAnswers,
  });
  const store: SiteStore = createSiteStore({ clock, log, tables, writer, sites: sites.all });
  const unclassified = createUnclassifiedReplies(clock.now);
  return {
    sites,
    classify: createClassifier({
      get rules() {
        return config.replies;
      },
    }),
    feedback: createFeedback({
      clock: monotonic,
      log,
      hostAnswers,
      onUnclassified: ({ phase, reply }, host) => {
        if (reply !== null) unclassified.add(phase, reply, host);
      },
    }),
    write: async () => {
      await store.write();
      await storeUnclassified(unclassified, writer, log);
    },
    limits: () => Array.from(sites.all(), (site) => ({ site: site.key, ...site.limits() })),
    slow: () => slowSites(sites.all(), clock),
  };
}
