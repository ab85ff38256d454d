import { textFault } from '../core/refusal.ts';
import type { Alternative, Attachment } from '../mail/content.ts';

/** An iCalendar object of a request: what it is in the message that is sent (RFC 6047). */
export interface CalendarInput {
  method: string;
  content: string;
}

export interface CalendarParts {
  alternative: Alternative;
  /** For readers that offer to open or import a file. */
  file: Attachment;
  /** Octets of the object, which is counted once. */
  bytes: number;
  /** In words, what makes readers show no invitation. */
  warnings: string[];
}

/** RFC 5546 §1.4. */
export const CALENDAR_METHODS = [
  'PUBLISH',
  'REQUEST',
  'REPLY',
  'ADD',
  'CANCEL',
  'REFRESH',
  'COUNTER',
  'DECLINECOUNTER',
] as const;

/** RFC 5545 §3.1: lines end with CRLF. The property names are not case-sensitive. */
const OBJECT = /^BEGIN:VCALENDAR\r\n[\s\S]*\r\nEND:VCALENDAR\r\n$/i;
const METHOD_PROPERTY = /^METHOD(?:;[^:\r\n]*)?:([^\r\n]*)\r$/im;

/** Null after a fault. */
export function parseCalendar(
  calendar: CalendarInput,
  fault: (field: string, message: string) => void,
): CalendarParts | null {
  const method = CALENDAR_METHODS.find((known) => known === calendar.method.trim().toUpperCase());
  if (method === undefined) fault('calendar.method', `must be one of ${CALENDAR_METHODS.join(', ')}`);
  const content = `${calendar.content
    .replace(/^\ufeff/, '')
    .trim()
    .replace(/\r\n?|\n/g, '\r\n')}\r\n`;
  const problem = textFault(content);
  if (problem !== null) fault('calendar.content', problem);
  else if (!OBJECT.test(content))
    fault('calendar.content', 'must be an iCalendar object, from BEGIN:VCALENDAR to END:VCALENDAR');
  const property = METHOD_PROPERTY.exec(content)?.[1]?.trim();
  if (method !== undefined && property !== undefined && property.toUpperCase() !== method)
    fault('calendar.method', `must be the METHOD property of calendar.content, which is "${property}"`);
  if (method === undefined) return null;
  const octets = Buffer.from(content);
  const encoded = octets.toString('base64');
  return {
    alternative: {
      position: 'after-html',
      contentType: `text/calendar; charset=utf-8; method=${method}`,
      content: encoded,
    },
    // A second part of the type text/calendar would be a second invitation to some readers.
    file: { name: 'invite.ics', contentType: 'application/ics', content: encoded },
    bytes: octets.length,
    warnings:
      property === undefined
        ? ['calendar.content has no METHOD property: many mail programs show no invitation without it']
        : [],
  };
}
