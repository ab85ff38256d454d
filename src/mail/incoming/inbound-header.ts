import { isDeclaredReply, isYes } from './auto-reply.ts';
import { addressesIn, decodeWords, type Fields, firstAddress, isFieldName } from './fields.ts';
import { INCOMING_LIMITS, type IncomingLimits } from './limits.ts';
import { readHeader } from './mime.ts';

/** What the header of a received mail states. Nothing in it is authenticated. */
export interface InboundHeader {
  /** Address of the field From in lower case, '' for none. */
  from: string;
  subject: string;
  /** Without angle brackets, '' for none. */
  messageId: string;
  /** Ids of mails that it answers, without angle brackets: those of In-Reply-To, then the newest of References. */
  answered: string[];
  automatic: 'reply' | 'generated' | 'list' | 'bulk' | null;
  /** Fields Received: servers that it passed. */
  hops: number;
  /** Whether one of them is this server. */
  hasPassedHere: boolean;
  /** Fields in order of first occurrence, decoded. */
  headers: { name: string; value: string }[];
}

const LIMITS: IncomingLimits = { ...INCOMING_LIMITS, fieldChars: 4000 };
const MAX_ANSWERED = 20;
/** Characters of all fields that are returned. */
const MAX_HEADER_CHARACTERS = 64 * 1024;
const MAX_SUBJECT = 1000;
const MAX_HOP_BYTES = 1024 * 1024;

/** Reads the header of a mail. Never throws. `hostname`: of this server. */
export function readInboundHeader(raw: Buffer, hostname: string): InboundHeader {
  const { fields } = readHeader(raw, LIMITS);
  const here = ` by ${hostname} `;
  return {
    from: firstAddress(decodeWords(fields.get('from'))).toLowerCase(),
    subject: decodeWords(fields.get('subject')).slice(0, MAX_SUBJECT),
    messageId: idsIn(fields.get('message-id'))[0] ?? '',
    answered: [
      ...new Set([...idsIn(fields.get('in-reply-to')), ...idsIn(fields.get('references')).toReversed()]),
    ].slice(0, MAX_ANSWERED),
    automatic: automaticKind(fields),
    hops: hopsOf(raw),
    hasPassedHere: fields.all('received').some((value) => ` ${value} `.toLowerCase().includes(here)),
    headers: listed(fields),
  };
}

/**
 * Servers that a mail passed: the fields Received in the first MiB of its header, however many others are between them. Each
 * server of some providers adds thirty.
 */
export function hopsOf(raw: Buffer): number {
  const start = raw.toString('latin1', 0, MAX_HOP_BYTES);
  const end = start.search(/(?:^|\n)\r?\n/);
  return start.slice(0, end < 0 ? start.length : end).match(/(?:^|\n)received[ \t]*:/gi)?.length ?? 0;
}

/** Ids in angle brackets (RFC 5322 §3.6.4), which the result does not have. */
function idsIn(value: string): string[] {
  return addressesIn(value.replaceAll(/[<>]/g, ' '));
}

/** RFC 3834 §5, RFC 2919, and fields that were in use before them. The most precise declaration decides. */
function automaticKind(fields: Fields): InboundHeader['automatic'] {
  if (isDeclaredReply(fields)) return 'reply';
  const precedence = fields.get('precedence').toLowerCase();
  if (fields.get('list-id') !== '' || precedence === 'list') return 'list';
  if (isGenerated(fields)) return 'generated';
  return precedence === 'bulk' || precedence === 'junk' ? 'bulk' : null;
}

/** Reports have a type of their own (RFC 6522); with X-Auto-Response-Suppress, Exchange asks that no program answers. */
function isGenerated(fields: Fields): boolean {
  return (
    isYes(fields.get('auto-submitted')) ||
    isYes(fields.get('x-auto-response-suppress')) ||
    /^multipart\/report\b/i.test(fields.get('content-type'))
  );
}

function listed(fields: Fields): { name: string; value: string }[] {
  let characters = 0;
  return fields.names().flatMap((name) =>
    fields
      .all(name)
      .filter(() => isFieldName(name))
      .flatMap((field) => {
        const value = decodeWords(field);
        characters += name.length + value.length;
        return characters > MAX_HEADER_CHARACTERS ? [] : [{ name, value }];
      }),
  );
}
