import type { Clock } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import type { Log } from '../core/log.ts';
import type { Recorder } from '../events/record.ts';
import type { Writer } from '../store/database/writer.ts';
import type { Reader } from '../store/readers/reads.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import { createContacts } from './contacts.ts';
import { createErasure } from './erasure/erase.ts';
import { createErasers } from './erasure/erasers.ts';
import type { TracesDeps } from './erasure/traces.ts';
import { createSubscriptionGroups } from './groups.ts';
import { createImporter } from './import/import.ts';
import { createSignUps } from './sign-ups.ts';
import { createSubscriptions } from './subscriptions.ts';

export interface AudienceDeps {
  tables: Tables;
  /** Runs lists; default: on the calling thread. */
  reader?: Reader;
  writer: Writer;
  clock: Clock;
  ids: Ids;
  log: Log;
  recorder: Recorder;
  /** The limit on the number of an account's contacts. */
  mayAdd: MayAdd;
  /** The limit on the number of an account's subscription groups. Default: none. */
  mayAddGroup?: MayAdd;
  /** How long responses to repeated requests are stored, ms. */
  responsesKeptMs: number;
  /** See `TracesDeps`. */
  claimFile?: NonNullable<TracesDeps['claimFile']>;
  slackScript?: TracesDeps['slackScript'];
  /** Maximum time that a caller waits for an erasure, see `ErasureDeps`. */
  erasureWaitMs?: number;
}

/**
 * The audience of an account: contacts, subscription groups and consent. Creates the parts over the same `deps` and
 * starts nothing. `background` runs the loops of groups and erasures; background imports are separate
 * (`createBackgroundImports`).
 */
export function createAudience(deps: AudienceDeps) {
  const erasers = createErasers(deps);
  const groups = createSubscriptionGroups(deps);
  const erasure = createErasure({ ...deps, erasers, waitMs: deps.erasureWaitMs });
  return {
    contacts: createContacts(deps),
    groups,
    subscriptions: createSubscriptions(deps),
    signUps: createSignUps(deps),
    importer: createImporter(deps),
    erasure,
    /** Completes deletions of groups and erasures that were interrupted or have to wait. */
    background: {
      start: () => {
        groups.background.start();
        erasure.start();
      },
      stop: async () => {
        await groups.background.stop();
        await erasure.stop();
      },
    },
  };
}

export type Audience = ReturnType<typeof createAudience>;
