import { LRUCache } from 'lru-cache';
import { type Clock, MINUTE } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { VisitKind } from '../store/messages/events.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import type { Recorder } from './record.ts';

/**
 * Opens and clicks on their way to becoming events. They come by thousands when a campaign goes out, and from
 * anybody who has a link, so they wait in memory for a place in the next commit, one unit of work at a time
 * and never more than a handful in it: sends do not feel them. A crash loses what still waits, some
 * milliseconds of visits; visitors never wait for the database.
 */
export interface Visit {
  kind: VisitKind;
  messageId: string;
  /** Of the link; null for an opening. */
  url: string | null;
  ip: string;
  userAgent: string;
  /** Nobody looked at anything: a crawler, a scanner, a program. */
  isBot: boolean;
  /** Somebody's proxy came in place of the person: a privacy proxy or a scanner. */
  isProxy: boolean;
}

export interface Visits {
  note(visit: Visit): void;
  /** Records what waits. */
  close(): Promise<void>;
}

export interface VisitsSettings {
  clock: Clock;
  log: Log;
  writer: Writer;
  recorder: Recorder;
  /** Told of what became of each visit, for whoever counts. */
  observe?(kind: VisitKind, fate: 'recorded' | 'ignored' | 'lost'): void;
}

/** In one unit of work: some milliseconds at most between two sends. */
const AT_ONCE = 64;
/** Visits that wait; more than that are not taken. */
const MAX_WAITING = 20_000;

/**
 * How often a message's visits are recorded: so many as they come, then one a minute. A reader that loads the
 * picture again and again, or a stranger with a copy of a link, must not fill the database.
 */
const ALLOWANCE: Record<VisitKind, number> = {
  email_opened: 20,
  // A scanner follows every link of a long newsletter once.
  email_clicked: 300,
};
const REFILL_MS = MINUTE;
const REMEMBERED = 50_000;

interface Allowance {
  left: number;
  at: number;
}

export function createVisits({ clock, log, writer, recorder, observe }: VisitsSettings): Visits {
  const allowances = new LRUCache<string, Allowance>({ max: REMEMBERED });
  const waiting: Visit[] = [];
  let writing: Promise<void> | null = null;

  function isAllowed({ kind, messageId }: Visit): boolean {
    const key = `${kind} ${messageId}`;
    const now = clock.now();
    const most = ALLOWANCE[kind];
    const { left, at } = allowances.get(key) ?? { left: most, at: now };
    const gained = Math.max(0, Math.floor((now - at) / REFILL_MS));
    const allowed = Math.min(most, left + gained);
    allowances.set(key, {
      left: Math.max(0, allowed - 1),
      at: allowed === most ? now : at + gained * REFILL_MS,
    });
    return allowed > 0;
  }

  async function write(): Promise<void> {
    while (waiting.length > 0) {
      const visits = waiting.splice(0, AT_ONCE);
      try {
        const recorded = await writer.run((tables) => visits.map((visit) => record(recorder, tables, visit)));
        for (const [index, { kind }] of visits.entries())
          observe?.(kind, recorded[index] === true ? 'recorded' : 'ignored');
      } catch (error) {
        log.error({ err: error, visits: visits.length }, 'visits could not be recorded; they are lost');
        for (const { kind } of visits) observe?.(kind, 'lost');
      }
    }
    writing = null;
  }

  return {
    note: (visit) => {
      if (!isAllowed(visit)) return observe?.(visit.kind, 'ignored');
      if (waiting.length >= MAX_WAITING) return observe?.(visit.kind, 'lost');
      waiting.push(visit);
      writing ??= write();
    },
    close: async () => {
      await writing;
    },
  };
}

/** In a unit of work. False when the message is not on record any more. */
function record(recorder: Recorder, tables: Tables, visit: Visit): boolean {
  const { kind, messageId, url, ip, userAgent, isBot, isProxy } = visit;
  const message = tables.messages.byId(messageId);
  if (message === null) return false;
  const isFirst = tables.visits.markFirst(message.seq, kind, isBot ? 'machine' : 'person');
  const fields = { ...(url === null ? {} : { url }), ip, userAgent, isBot, isProxy, isFirst };
  return recorder.message(tables, message, kind, { fields });
}
