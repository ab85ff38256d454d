import type { Alternative, Attachment } from '../mail/content.ts';
import { textFault } from '../mail/text-fault.ts';
import type { Fault } from './faults.ts';

/** An iCalendar object of a request, and the parts of the message that it becomes (RFC 6047). */
export interface CalendarInput {
  method: string;
  content: string;
}

export interface CalendarParts {
  alternative: Alternative;
  /** For mail programs that offer to open or import a file. */
  file: Attachment;
  /** Length of the object, which is counted once. */
  bytes: number;
  /** Sentences about the reasons why mail programs may show no invitation. */
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

/**
 * RFC 5545 §3.1: lines end with CRLF. The property names are not case-sensitive. Without the flag `m`, which takes other
 * characters (U+2028) for line ends, too: each of them would begin another search to the end of the line.
 */
const OBJECT = /^BEGIN:VCALENDAR\r\n[\s\S]*\r\nEND:VCALENDAR\r\n$/i;
const METHOD_PROPERTY = /\nMETHOD(?:;[^:\r\n]*)?:([^\r\n]*)\r\n/i;

/** Reports each fault; null without a valid method. */
export function parseCalendar(calendar: CalendarInput, fault: Fault): CalendarParts | null {
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
    fault('calendar.method', `must equal the METHOD property of calendar.content, which is "${property}"`);
  if (method === undefined) return null;
  const utf8 = Buffer.from(content);
  const encoded = utf8.toString('base64');
  return {
    alternative: {
      position: 'after-html',
      contentType: `text/calendar; charset=utf-8; method=${method}`,
      content: encoded,
    },
    // Some mail programs would show a second text/calendar part as a second invitation.
    file: { name: 'invite.ics', contentType: 'application/ics', content: encoded },
    bytes: utf8.length,
    warnings:
      property === undefined
        ? ['calendar.content has no METHOD property: many mail programs show no invitation without it']
        : [],
  };
}
