import type { AccountLimitDefaults } from '../../src/accounts/limits.ts';
import { createAudience } from '../../src/audience/service.ts';
import { createStatusFollower } from '../../src/audience/standing.ts';
import { createLog } from '../../src/core/log.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { createRecorder } from '../../src/events/record.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import type { SuppressionReason, SuppressionStream } from '../../src/store/suppressions.ts';
import { granted } from '../support/refusal.ts';
import { heldClock, insertAccount, startStore } from '../support/store.ts';

/** The audience over a real database, with one account and one subscription group. */
export async function startAudience(defaults: AccountLimitDefaults = {}) {
  const clock = heldClock();
  const store = startStore(clock, defaults);
  const { tables, writer, ids } = store;
  const follow = createStatusFollower(clock);
  const recorder = createRecorder({ clock, ids }, { onSuppressionChange: follow });
  const audience = createAudience(
    { ...store, log: createLog({ level: 'silent', hashAddresses: false }) },
    { recorder, mayAdd: store.limits.mayAdd, responsesKeptMs: 86_400_000 },
  );
  insertAccount(tables, 'acct_two', clock.now());
  const group = granted(await audience.groups.create('acct_one', GROUP));

  return {
    ...store,
    ...audience,
    recorder,
    groupId: group.subscription_group_id,
    /** Adds a contact and returns it. */
    add: async (email: string, profile: object = {}) =>
      granted(await audience.contacts.create('acct_one', { email, ...profile }, CALLER)),
    /** Adds a suppression as bounces, complaints and opt-outs do. */
    suppress: (email: string, reason: SuppressionReason, stream: SuppressionStream = 'all') =>
      writer.run((tx) => {
        const recipient_hash = emailIdentifier(email);
        tx.suppressions.add({
          account_id: 'acct_one',
          recipient_hash,
          stream,
          reason,
          email,
          message_seq: null,
          created_at: clock.now(),
        });
        follow(tx, 'acct_one', recipient_hash);
      }),
    lift: (email: string) =>
      writer.run((tx) => {
        const hash = emailIdentifier(email);
        for (const { seq } of tx.suppressions.of('acct_one', hash)) tx.suppressions.remove(seq);
        follow(tx, 'acct_one', hash);
      }),
    status: (email: string) =>
      tables.contacts.byIdentifier('acct_one', emailIdentifier(email))?.global_status,
  };
}

export const CALLER = { by: 'key_one', ipAddress: '192.0.2.1', userAgent: 'Shop/1' };

export const GROUP = {
  name: 'News',
  description: null,
  isActive: true,
  tags: [],
  unsubscribeTemplateId: null,
  reportAbuseTemplateId: null,
  companyAddressTemplateId: null,
  signUp: null,
  isPublic: null,
  archive: false,
};

/** The code of a refusal, else the value. */
export function codeOf(value: unknown): unknown {
  return isRefusal(value) ? value.code : value;
}
