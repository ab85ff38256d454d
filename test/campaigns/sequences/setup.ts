import { onTestFinished } from 'vitest';
import type { AccountLimitDefaults } from '../../../src/accounts/limits.ts';
import type { SequenceStep } from '../../../src/audience/sequences/definition.ts';
import { createAudience } from '../../../src/audience/service.ts';
import { createStatusFollower } from '../../../src/audience/standing.ts';
import { createSequenceRunner } from '../../../src/campaigns/sequences/run.ts';
import { createSequences, type SequenceInput } from '../../../src/campaigns/sequences/sequences.ts';
import { DAY, HOUR } from '../../../src/core/clock.ts';
import { createExpiryClock } from '../../../src/core/expiry-clock.ts';
import { createLog } from '../../../src/core/log.ts';
import type { Refusal } from '../../../src/core/refusal.ts';
import { createRecorder } from '../../../src/events/record.ts';
import { createAcceptance } from '../../../src/sending/accept.ts';
import { createIdempotencyKeys } from '../../../src/sending/idempotency.ts';
import { createOneClickNotice } from '../../../src/sending/one-click.ts';
import type { Writer } from '../../../src/store/database/writer.ts';
import { createTemplateThreads } from '../../../src/templates/thread/threads.ts';
import { granted } from '../../support/refusal.ts';
import { contentOf, heldClock, insertDomain, startStore } from '../../support/store.ts';

export const CALLER = { by: 'key_one', ipAddress: null, userAgent: null };
/** With a key that can use all domains. */
export const OWNER = { accountId: 'acct_one', allowFrom: [] };
const PUBLIC_URL = 'https://mail.test';
const COMPLIANCE = '{{company_address_html}}{{unsubscribe_email_html}}';

/** A step that sends a message with this subject. */
export const message = (subject: string, text = 'Hello {{firstName}}'): SequenceStep => ({
  send: { from: 'News <news@news.example>', subject, html: `<p>${text}</p>${COMPLIANCE}` },
});

/** Sequences over a real database, with a verified marketing domain and a group; `run` does what the runner does. */
export async function startSequences(defaults: AccountLimitDefaults = {}) {
  const store = startStore(heldClock(), defaults);
  const { tables, writer, ids, clock } = store;
  insertDomain(
    tables,
    { account_id: 'acct_one', domain_id: 'domain_mk', name: 'news.example', use_case: 'mk' },
    clock.now(),
  );
  const log = createLog({ level: 'silent', hashAddresses: true });
  const recorder = createRecorder({ clock, ids }, { onSuppressionChange: createStatusFollower(clock) });
  let pressure: Refusal | null = null;
  const threads = createTemplateThreads(log);
  onTestFinished(() => threads.stop());

  /** The parts of a process: its memory is lost when it is replaced. */
  const startProcess = (through: Pick<Writer, 'run'> = writer) => {
    // Sound: these parts only run units of work.
    const context = { ...store, log, writer: through as Writer };
    const { accept } = createAcceptance(context, {
      recorder,
      keys: createIdempotencyKeys({ tables, now: clock.now, lifetimeMs: HOUR }),
      pressure: { refusal: () => pressure },
      limits: store.limits,
      oneClick: createOneClickNotice({ publicUrl: PUBLIC_URL, log }),
      simulatorDomain: 'simulator.mail.test',
      publicUrl: PUBLIC_URL,
      expire: { tx: 2 * DAY, mk: 4 * DAY },
      expiry: createExpiryClock(clock, clock),
      leaseNow: (mail) => mail.map(() => null),
      accepted: () => {},
      announce: () => {},
      threads,
      attachmentFiles: { use: () => Promise.reject(new Error('a file was fetched')) },
    });
    const runner = createSequenceRunner(context, {
      accept,
      pressure: { refusal: () => pressure, capacity: () => Number.POSITIVE_INFINITY },
      limits: store.limits,
    });
    return {
      accept,
      runner,
      sequences: createSequences(context, { onChange: () => {}, threads, obstacle: runner.obstacle }),
      audience: createAudience(context, { recorder, mayAdd: store.limits.mayAdd, responsesKeptMs: DAY }),
    };
  };
  const process = startProcess();
  const { sequences, audience, runner } = process;
  const createGroup = async (name: string) =>
    granted(
      await audience.groups.create('acct_one', {
        name,
        description: null,
        isActive: true,
        tags: [],
        unsubscribeTemplateId: null,
        reportAbuseTemplateId: null,
        companyAddressTemplateId: null,
        isPublic: null,
        archive: false,
        signUp: null,
      }),
    ).subscription_group_id;
  const groupId = await createGroup('News');
  return {
    ...store,
    ...process,
    recorder,
    startProcess,
    groupId,
    createGroup,
    setPressure: (refusal: Refusal | null) => {
      pressure = refusal;
    },
    /** Creates and activates a sequence; returns its row. */
    active: async (input: Partial<SequenceInput> = {}) =>
      granted(
        await sequences.create(OWNER, {
          name: 'Welcome',
          trigger: { joined: groupId },
          steps: [message('One'), { wait: '2d' }, message('Two')],
          status: 'active',
          ...input,
        }),
      ).row,
    contact: async (email: string, profile: object = {}) =>
      granted(await audience.contacts.create('acct_one', { email, ...profile }, CALLER)),
    join: async (email: string, into = groupId) =>
      granted(await audience.subscriptions.add('acct_one', into, { email, isActive: true }, CALLER)),
    /** Lets the runner work until nothing is due. */
    run: async () => {
      while ((await runner.round()) === 0);
    },
    /** Recipients and subjects of all messages, in their order. */
    sent: (): string[] =>
      tables.messages
        .list({ accountId: 'acct_one', limit: 10_000 })
        .rows.toReversed()
        .map((row) => `${row.recipient} ${row.subject}`),
    content: (subject: string) =>
      contentOf(
        tables,
        tables.messages
          .list({ accountId: 'acct_one', limit: 200 })
          .rows.find((row) => row.subject === subject),
      ),
    /** State, step and reason of the people in a sequence, oldest first. */
    people: (seq: number) =>
      tables.sequencePeople
        .list({ sequenceSeq: seq, beforeSeq: null, limit: 200 })
        .rows.toReversed()
        .map(({ email, state, step, reason }) => [email, state, step, reason]),
  };
}
