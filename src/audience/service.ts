import type { Recorder } from '../events/record.ts';
import type { Context } from '../store/context.ts';
import type { MayAdd } from '../store/tables.ts';
import { createContacts } from './contacts.ts';
import { createErasure, type ErasureOptions } from './erasure/erase.ts';
import { createErasers } from './erasure/erasers.ts';
import { createSubscriptionGroups } from './groups.ts';
import { createImporter } from './import/import.ts';
import { createPauses } from './pauses.ts';
import { createSegmentCopies } from './segments/copies.ts';
import { createSegments } from './segments/segments.ts';
import { createSignUps } from './sign-ups.ts';
import { createSubscriptions } from './subscriptions.ts';

interface AudienceOptions extends ErasureOptions {
  recorder: Recorder;
  mayAdd: Record<'contacts' | 'subscriptionGroups', MayAdd>;
  /** How long responses to repeated requests are stored, ms. */
  responsesKeptMs: number;
}

/**
 * The audience of an account: contacts, subscription groups and consent. Creates the parts over the same context and
 * starts nothing. `background` runs the loops of groups, erasures and pauses; background imports are separate
 * (`createBackgroundImports`).
 */
export function createAudience(
  context: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock' | 'ids' | 'log' | 'monotonic'>,
  { recorder, mayAdd, responsesKeptMs, ...erasureOptions }: AudienceOptions,
) {
  const pauses = createPauses(context);
  const groups = createSubscriptionGroups(context, mayAdd.subscriptionGroups);
  const erasure = createErasure(
    context,
    createErasers(context.reader, recorder, responsesKeptMs),
    erasureOptions,
  );
  const segmentCopies = createSegmentCopies(context);
  const parts = { recorder, mayAdd: mayAdd.contacts };
  return {
    contacts: createContacts(context, parts),
    groups,
    subscriptions: createSubscriptions(context, recorder),
    signUps: createSignUps(context, parts),
    segments: createSegments(context),
    importer: createImporter(context, mayAdd.contacts),
    erasure,
    /**
     * Completes deletions of groups and erasures that were interrupted or have to wait, copies contacts for segments, and ends
     * pauses.
     */
    background: {
      start: () => {
        groups.background.start();
        erasure.start();
        segmentCopies.start();
        pauses.start();
      },
      stop: async () => {
        await groups.background.stop();
        await erasure.stop();
        await segmentCopies.stop();
        await pauses.stop();
      },
    },
  };
}

export type Audience = ReturnType<typeof createAudience>;
