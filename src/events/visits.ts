import { createTokenBuckets } from '../core/token-bucket.ts';
import type { Context } from '../store/context.ts';
import type { VisitKind } from '../store/messages/events.ts';
import type { Tables } from '../store/tables.ts';
import type { MessageEvent } from './event-types.ts';
import type { Recorder } from './record.ts';

/**
 * Records opens and clicks. A campaign can cause thousands at a time, and so can anyone who has a link: they wait in
 * memory and are recorded in small units of work, one at a time, between those of sends. Visitors never wait for the
 * database. A crash loses the waiting visits, those of the last milliseconds.
 */
export type TrackedVisit = Visitor & ({ kind: 'email_opened' } | { kind: 'email_clicked'; url: string });

interface Visitor {
  messageId: string;
  /** Whether the message may belong to this account, by the tag in the token of the link. */
  isOf(accountId: string): boolean;
  ip: string;
  userAgent: string;
  /** The client is a crawler, a scanner or another program. */
  isBot: boolean;
  /** The request came through a privacy proxy or a scanner. */
  isProxy: boolean;
}

/** Visits in one unit of work, which delays a send by some milliseconds at most. */
const VISIT_BATCH_SIZE = 64;
/** Waiting visits; further ones are lost. */
const MAX_WAITING = 20_000;

/**
 * Visits of a message that are recorded without a limit on their rate; after that one per minute. A mail program that
 * loads the image repeatedly, or anyone with a copy of a link, must not fill the database.
 */
const BURSTS: Record<VisitKind, number> = {
  email_opened: 20,
  // A scanner follows every link of a long newsletter once.
  email_clicked: 300,
};
const PER_SECOND = 1 / 60;
/** Messages of each kind of visit whose allowance is in memory. */
const MAX_ALLOWANCES = 25_000;

/**
 * At most 20,000 visits wait. A unit of work records up to 64, and the next one begins when it is on disk. The
 * allowances of 50,000 messages are in memory. Call `close` when no more visits can come.
 */
export function createVisits(
  { clock, log, writer }: Pick<Context, 'clock' | 'log' | 'writer'>,
  {
    recorder,
    observe,
  }: {
    recorder: Recorder;
    /** Called for each visit, for metrics. */
    observe?(kind: VisitKind, result: 'recorded' | 'ignored' | 'lost'): void;
  },
) {
  const allowance = (kind: VisitKind) =>
    createTokenBuckets(clock, { burst: BURSTS[kind], perSecond: PER_SECOND }, MAX_ALLOWANCES);
  const allowances = { email_opened: allowance('email_opened'), email_clicked: allowance('email_clicked') };
  const waiting: TrackedVisit[] = [];
  let writing: Promise<void> | null = null;

  async function write(): Promise<void> {
    while (waiting.length > 0) {
      const visits = waiting.splice(0, VISIT_BATCH_SIZE);
      try {
        const recorded = await writer.run(
          (tables) => visits.map((visit) => recordVisit(recorder, tables, visit)),
          'visits',
        );
        for (const [index, { kind }] of visits.entries())
          observe?.(kind, recorded[index] === true ? 'recorded' : 'ignored');
      } catch (error) {
        log.error({ err: error, visits: visits.length }, 'visits could not be recorded and are lost');
        for (const { kind } of visits) observe?.(kind, 'lost');
      }
    }
    writing = null;
  }

  return {
    record: (visit: TrackedVisit): void => {
      const { allowed } = allowances[visit.kind].of(visit.messageId).take();
      if (!allowed) return observe?.(visit.kind, 'ignored');
      if (waiting.length >= MAX_WAITING) return observe?.(visit.kind, 'lost');
      waiting.push(visit);
      writing ??= write();
    },
    /** Resolves when all waiting visits are recorded. */
    close: async (): Promise<void> => {
      await writing;
    },
  };
}

export type Visits = ReturnType<typeof createVisits>;

/** In a unit of work. Returns false when the message was purged, or is not of the link's account. */
function recordVisit(recorder: Recorder, tables: Tables, visit: TrackedVisit): boolean {
  const { kind, messageId, ip, userAgent, isBot, isProxy } = visit;
  const message = tables.messages.byId(messageId);
  if (message === null || !visit.isOf(message.account_id)) return false;
  const isFirst = tables.visits.markFirst(message.seq, kind, isBot ? 'machine' : 'person');
  const fields = { ip, userAgent, isBot, isProxy, isFirst };
  const event: MessageEvent =
    visit.kind === 'email_opened'
      ? { kind: visit.kind, fields }
      : { kind: visit.kind, fields: { url: visit.url, ...fields } };
  return recorder.message(tables, message, event);
}
