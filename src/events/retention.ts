import { type Clock, DAY } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { Writer } from '../store/writer.ts';

/**
 * What is kept how long. Purging goes in small units, so that it never holds up a send: bodies some days
 * after a message is final, then events, what webhooks were told of them, the message records, and with them
 * mail and reports that came in; idempotent answers when they expire.
 */
export interface RetentionSettings {
  clock: Clock;
  log: Log;
  writer: Writer;
  bodyDays: number;
  eventDays: number;
}

const AT_ONCE = 500;

/** Deletes all that is past its time; returns how many rows of each. */
export async function purgeOld(settings: RetentionSettings): Promise<Record<string, number>> {
  const { clock, writer } = settings;
  const now = clock.now();
  const bodiesBefore = now - settings.bodyDays * DAY;
  const eventsBefore = now - settings.eventDays * DAY;
  const purged = {
    bodies: await untilNone(() =>
      writer.run((tables) => tables.messages.purgeContents(bodiesBefore, AT_ONCE)),
    ),
    sharedBodies: await untilNone(() =>
      writer.run((tables) => tables.sharedContents.purge(bodiesBefore, AT_ONCE)),
    ),
    events: await untilNone(() => writer.run((tables) => tables.events.purge(eventsBefore, AT_ONCE))),
    webhookDeliveries: await untilNone(() => writer.run((tables) => tables.webhookDeliveries.purge(AT_ONCE))),
    messages: await untilNone(() => writer.run((tables) => tables.messages.purge(eventsBefore, AT_ONCE))),
    strikes: await untilNone(() =>
      writer.run((tables) => tables.suppressions.purgeStrikes(eventsBefore, AT_ONCE)),
    ),
    delayNotices: await untilNone(() =>
      writer.run((tables) => tables.delayNotices.purge(eventsBefore, AT_ONCE)),
    ),
    keptMail: await untilNone(() => writer.run((tables) => tables.keptMail.purge(eventsBefore, AT_ONCE))),
    dmarcReports: await untilNone(() =>
      writer.run((tables) => tables.dmarcReports.purge(eventsBefore, AT_ONCE)),
    ),
    tlsReports: await untilNone(() => writer.run((tables) => tables.tlsReports.purge(eventsBefore, AT_ONCE))),
    answers: await untilNone(() => writer.run((tables) => tables.idempotency.purge(now, AT_ONCE))),
  };
  settings.log.info(purged, 'purged what is past its time');
  return purged;
}

async function untilNone(purge: () => Promise<number>): Promise<number> {
  let total = 0;
  for (;;) {
    const purged = await purge();
    total += purged;
    if (purged < AT_ONCE) return total;
  }
}
