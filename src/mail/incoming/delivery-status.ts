import { fieldLines, linesOf, withoutRoute } from './fields.ts';
import type { IncomingLimits } from './limits.ts';

/**
 * Parses the machine-readable part of a delivery status notification (RFC 3464, RFC 6533): a group of fields for the
 * message, and one for each recipient. Groups are separated by their fields and not by empty lines, which some servers
 * omit and others add.
 */
export interface StatusGroup {
  /** `Final-Recipient`, else `Original-Recipient`; without type and brackets, '' when unreadable. */
  recipient: string;
  originalRecipient: string;
  /** Lower case: failed, delayed, delivered, relayed, expanded; '' when missing. */
  action: string;
  /** `5.1.1`, '' when missing or unreadable. */
  status: string;
  /** Text that some servers add after the status, with or without parentheses. */
  statusComment: string;
  /** `smtp`, `x-postfix`, ...; '' when missing. */
  diagnosticType: string;
  diagnostic: string;
  /** The bounce category of PowerMTA, '' from other servers. */
  category: string;
  /** Host name or address of `Remote-MTA`, '' when missing. */
  remoteMta: string;
}

export interface DeliveryStatus {
  envelopeId: string;
  reportingMta: string;
  groups: StatusGroup[];
}

const GROUP_FIELDS = new Set([
  'final-recipient',
  'original-recipient',
  'action',
  'status',
  'diagnostic-code',
  'remote-mta',
  'last-attempt-date',
  'final-log-id',
  'will-retry-until',
  'x-powermta-bouncecategory',
]);

/**
 * Never throws: what is missing is ''. Reads at most `limits.reports` groups and `limits.fieldChars` characters of a
 * value; groups that state nothing about a recipient are omitted.
 */
export function readDeliveryStatus(text: string, limits: IncomingLimits): DeliveryStatus {
  const message = new Map<string, string>();
  const groups: Map<string, string>[] = [];
  for (const block of blocksOf(text)) {
    let group = groups.at(-1);
    let mayContinue =
      group !== undefined && !group.has('final-recipient') && !group.has('original-recipient');
    for (const [name, value] of fieldLines(block, limits.fieldChars)) {
      if (!GROUP_FIELDS.has(name)) {
        if (!message.has(name)) message.set(name, value);
        continue;
      }
      if (!group || (!mayContinue && beginsGroup(group, name)) || group.has(name)) {
        if (groups.length >= limits.reports) break;
        group = new Map();
        groups.push(group);
      }
      mayContinue = true;
      group.set(name, value);
    }
  }
  return {
    envelopeId: message.get('original-envelope-id') ?? '',
    reportingMta: readHost(message.get('reporting-mta') ?? ''),
    groups: groups.map(readGroup).filter(isAboutRecipient),
  };
}

/** In a new block, a field that names a recipient, or repeats the result of one, begins the next group. */
function beginsGroup(group: ReadonlyMap<string, string>, name: string): boolean {
  return name === 'final-recipient' || name === 'original-recipient' || group.has('final-recipient');
}

function isAboutRecipient(group: StatusGroup): boolean {
  return group.recipient !== '' || group.diagnostic !== '' || (group.action !== '' && group.status !== '');
}

function* blocksOf(text: string): Generator<string> {
  let block: string[] = [];
  for (const line of linesOf(text)) {
    if (line.trim() !== '') block.push(line);
    else if (block.length > 0) {
      yield block.join('\n');
      block = [];
    }
  }
  if (block.length > 0) yield block.join('\n');
}

function readGroup(fields: ReadonlyMap<string, string>): StatusGroup {
  const finalRecipient = readRecipient(fields.get('final-recipient') ?? '');
  const originalRecipient = readRecipient(fields.get('original-recipient') ?? '');
  const [, status = '', comment = ''] =
    /^\D{0,5}([245]\.\d{1,3}\.\d{1,3})\b(.*)$/s.exec(fields.get('status') ?? '') ?? [];
  const diagnostic = fields.get('diagnostic-code') ?? '';
  const [, type = '', rest = diagnostic] = /^([\w-]{1,30})\s*;\s*(.*)$/s.exec(diagnostic) ?? [];
  return {
    recipient: finalRecipient.includes('@') ? finalRecipient : originalRecipient || finalRecipient,
    originalRecipient,
    action: readAction(fields.get('action') ?? ''),
    status,
    statusComment: comment.trim().replace(/^\((.*)\)$/s, '$1'),
    diagnosticType: type.toLowerCase(),
    diagnostic: rest.trim(),
    category: fields.get('x-powermta-bouncecategory') ?? '',
    remoteMta: readHost(fields.get('remote-mta') ?? ''),
  };
}

/** Values that some servers use for `failed` (RFC 3464 §2.3.3). */
const FAILED = new Set(['fail', 'failure', 'error']);

function readAction(value: string): string {
  const action = (/^[a-z-]+/i.exec(value.trim())?.[0] ?? '').toLowerCase();
  return FAILED.has(action) ? 'failed' : action;
}

/** `rfc822; <a@example.com>`, `utf-8; ä@example.com` (RFC 6533 §3), `a@example.com (Name)`. */
function readRecipient(value: string): string {
  const typed = /^\s*([\w-]{1,20})\s*;/.exec(value)?.[1]?.toLowerCase() ?? '';
  const address = withoutType(value);
  const bracketed = /<([^<>\s]{1,320})>/.exec(address)?.[1];
  const plain = bracketed ?? address.replace(/(?<!\s)\s+\(.*$/s, '').trim();
  return withoutRoute(typed === 'utf-8' ? decodeUnitext(plain) : plain).slice(0, 320);
}

/** `\x{E4}` is an escaped character (RFC 6533 §3). */
function decodeUnitext(text: string): string {
  return text.replaceAll(/\\x\{([0-9a-f]{1,6})\}/gi, (whole, hex: string) => {
    const code = Number.parseInt(hex, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

function withoutType(value: string): string {
  return value.replace(/^\s*[\w-]{1,20}\s*;\s*/, '').trim();
}

function readHost(value: string): string {
  const host = withoutType(value).split(/[\s(]/, 1)[0] ?? '';
  return host.replace(/^\[|\]$/g, '').toLowerCase();
}
