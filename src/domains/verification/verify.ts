import { setMaxListeners } from 'node:events';
import { type Clock, SECOND } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { Resolver } from '../../dns/resolver.ts';
import type { DomainEventKind } from '../../events/event-types.ts';
import type { DomainEventFields } from '../../events/record.ts';
import type { DomainRow } from '../../store/domains/domains.ts';
import type { Tables } from '../../store/tables.ts';
import type { Writer } from '../../store/writer.ts';
import type { Platform } from '../platform/platform.ts';
import { dropRetired, pendingKey, promote } from '../rotation.ts';
import { createDnsView } from './dns-view.ts';
import { examine, type Findings } from './findings.ts';
import { type Check, concluded } from './outcome.ts';

/**
 * One verification of one domain: look at DNS without holding anything, then write what follows in one unit,
 * against the row as it is by then. Two at once do no harm: each applies what it saw.
 */
export interface DomainEvent {
  domain: DomainRow;
  kind: DomainEventKind;
  at: number;
  data: DomainEventFields;
}

/** Records an event inside the unit that changes the state it tells of. */
export type RecordDomainEvent = (tables: Tables, event: DomainEvent) => void;

export interface Verified {
  domain: DomainRow;
  checks: Check[];
}

export interface VerifyOptions {
  /** Asks past our DNS caches. */
  fresh: boolean;
  /** By the clock, not by hand. */
  automatic: boolean;
  /** Gives up, and writes nothing. */
  signal?: AbortSignal;
}

export interface VerifierHouse {
  tables: Tables;
  writer: Writer;
  clock: Clock;
  log: Log;
  resolver: Resolver;
  platform: Platform;
  answersHttps: (host: string) => Promise<boolean>;
  recordDomainEvent: RecordDomainEvent;
}

/** All checks together; a caller waits for it. */
const MAX_DURATION = 20 * SECOND;

export type Verifier = (domainId: string, options: VerifyOptions) => Promise<Verified | null>;

/** Resolves to null when the domain is gone, before or meanwhile, and when it was given up. */
export function createVerifier(house: VerifierHouse): Verifier {
  const { tables, writer, clock, log, resolver, platform, answersHttps, recordDomainEvent } = house;

  function conclude(domainId: string, findings: Findings, automatic: boolean): Promise<Verified | null> {
    return writer.run((tables) => {
      const before = tables.domains.byId(domainId);
      if (before === null) return null;
      const now = clock.now();
      if (findings.seenKey !== null && promote(tables, domainId, findings.seenKey, now)) {
        log.info(
          { domainId, domain: before.name },
          'DKIM key changed: the new one is in DNS and signs from now on',
        );
      }
      dropRetired(tables, domainId, now);
      const rotationSince = pendingKey(tables.dkimKeys.of(domainId))?.created_at ?? null;
      const { row, checks, event } = concluded(before, findings, { now, automatic, rotationSince });
      tables.domains.update(row);
      if (event !== null) {
        recordDomainEvent(tables, {
          domain: row,
          kind: event,
          at: now,
          data: eventData(before, row, checks),
        });
        log.info(
          { domainId, domain: row.name, before: before.status, status: row.status },
          'domain status changed',
        );
      }
      return { domain: row, checks };
    });
  }

  return async (domainId, { fresh, automatic, signal }) => {
    const domain = tables.domains.byId(domainId);
    if (domain === null) return null;
    const bound = AbortSignal.any([
      AbortSignal.timeout(MAX_DURATION),
      ...(signal === undefined ? [] : [signal]),
    ]);
    // One listener for each question under way is no leak.
    setMaxListeners(0, bound);
    const view = createDnsView(resolver, { fresh, signal: bound });
    const findings = await examine({ view, platform, answersHttps }, domain, tables.dkimKeys.of(domainId));
    return signal?.aborted === true ? null : conclude(domainId, findings, automatic);
  };
}

/** What the event says besides the domain: the state, and what stands in the way. */
function eventData(before: DomainRow, after: DomainRow, checks: readonly Check[]): DomainEventFields {
  const failing = checks.filter(
    ({ check, passed }) => !passed && ['dkim', 'spf', 'dmarc', 'mx'].includes(check),
  );
  return {
    status: after.status,
    previousStatus: before.status,
    failing: failing.map(({ check, hint }) => ({ check, hint })),
  };
}
