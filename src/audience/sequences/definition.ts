import * as z from 'zod';
import { DAY, HOUR, MINUTE } from '../../core/clock.ts';
import { textFault } from '../../mail/text-fault.ts';
import type { TriggerKind } from '../../store/campaigns/sequences.ts';
import { type SegmentFilter, segmentFilter } from '../segments/filter.ts';

/*
 * What a sequence does: the trigger that begins it, its steps in their order, and the goal that ends it. The schema
 * validates everything that does not depend on the account.
 */

export const MAX_STEPS = 50;
/** Versions of a sequence that people can be in at the same time. */
export const MAX_VERSIONS = 50;
/** Characters of a definition as JSON. */
export const MAX_DEFINITION_LENGTH = 512 * 1024;
export const MAX_OFFSET_DAYS = 365;
export const MAX_EVENT_NAME = 100;
const MAX_HTML = 256 * 1024;
const MAX_SUBJECT = 998;
const MAX_FIELD_NAME = 100;
const MAX_ID = 100;
const MIN_WAIT_MS = MINUTE;
const MAX_WAIT_MS = 365 * DAY;

const UNITS = { m: MINUTE, h: HOUR, d: DAY } as const;
const WAIT = /^([1-9]\d{0,5})([mhd])$/;

/** The duration of a wait such as `2d`, ms; null: it is none. */
export function waitMs(text: string): number | null {
  const [, count, unit] = WAIT.exec(text) ?? [];
  if (unit !== 'm' && unit !== 'h' && unit !== 'd') return null;
  const ms = Number(count) * UNITS[unit];
  return ms >= MIN_WAIT_MS && ms <= MAX_WAIT_MS ? ms : null;
}

function text(max: number) {
  return z
    .string()
    .max(max)
    .superRefine((value, context) => {
      const fault = textFault(value);
      if (fault !== null) context.addIssue({ code: 'custom', message: fault });
    });
}

const fieldName = text(MAX_FIELD_NAME).min(1);

/** The name of an event: what a contact did, such as `order placed`. */
export const eventName = text(MAX_EVENT_NAME)
  .min(1)
  .regex(/^[^\p{Cc}\p{Zl}\p{Zp}]*$/u, 'must be one line without control characters')
  .meta({ id: 'ContactEventName', description: 'What the contact did, such as `order placed`.' });

/** Exactly one of the fields, apart from `offsetDays`. */
export interface SequenceTrigger {
  /** Id of a subscription group. */
  joined?: string | undefined;
  confirmed?: string | undefined;
  /** Name of an event. */
  event?: string | undefined;
  /** Name of a custom field. */
  dateField?: string | undefined;
  /** With `dateField`; default: 0. */
  offsetDays?: number | undefined;
  fieldSet?: string | undefined;
}

export interface SequenceSend {
  from: string;
  templateId?: string | undefined;
  subject?: string | undefined;
  html?: string | undefined;
  text?: string | undefined;
  syntax?: 'simple' | 'liquid' | undefined;
  replyTo?: string | undefined;
  enableClickTracking?: boolean | undefined;
  enableOpenTracking?: boolean | undefined;
}

/** Exactly one of `wait`, `send`, `when` and `end`. */
export interface SequenceStep {
  wait?: string | undefined;
  send?: SequenceSend | undefined;
  when?: SegmentFilter | undefined;
  otherwise?: 'end' | 'skip' | undefined;
  end?: true | undefined;
}

export interface SequenceDefinition {
  trigger: SequenceTrigger;
  steps: SequenceStep[];
  goal?: SegmentFilter | undefined;
}

const KINDS_OF_TRIGGER = ['joined', 'confirmed', 'event', 'dateField', 'fieldSet'] as const;
const KINDS_OF_STEP = ['wait', 'send', 'when', 'end'] as const;

const groupId = z.string().min(1).max(MAX_ID);

export const sequenceTrigger: z.ZodType<SequenceTrigger> = z
  .strictObject({
    joined: groupId.optional().describe('The contact becomes an active member of this subscription group.'),
    confirmed: groupId
      .optional()
      .describe('The person confirms the sign-up for this subscription group (double opt-in).'),
    event: eventName
      .optional()
      .describe('`POST /web-setup/contacts/{contactIdentifier}/events` with this name.'),
    dateField: fieldName
      .optional()
      .describe('The date in this custom field is reached, at 00:00 UTC if it has no time.'),
    offsetDays: z
      .int()
      .min(-MAX_OFFSET_DAYS)
      .max(MAX_OFFSET_DAYS)
      .optional()
      .describe('With `dateField`: days after the date; a negative number: before it. Default: 0.'),
    fieldSet: fieldName.optional().describe('This custom field gets another value.'),
  })
  .superRefine((given, context) => {
    exactlyOne(given, KINDS_OF_TRIGGER, context);
    if (given.offsetDays !== undefined && given.dateField === undefined)
      context.addIssue({ code: 'custom', path: ['offsetDays'], message: 'requires a dateField' });
  })
  .meta({
    id: 'SequenceTrigger',
    description: 'Exactly one of the fields, and `offsetDays` with `dateField`.',
  });

const send: z.ZodType<SequenceSend> = z
  .strictObject({
    from: text(500).min(1).describe('Sender: an address of a domain for marketing mail.'),
    templateId: z.string().min(1).max(MAX_ID).optional().describe('In place of `html` and `text`.'),
    subject: text(MAX_SUBJECT).min(1).optional().describe('Default: the subject of the template.'),
    html: text(MAX_HTML).optional(),
    text: text(MAX_HTML).optional(),
    syntax: z
      .enum(['simple', 'liquid'])
      .optional()
      .describe('Of `subject`, `html` and `text`; default: `simple`. A template has its own.'),
    replyTo: text(500).min(1).optional(),
    enableClickTracking: z.boolean().optional(),
    enableOpenTracking: z.boolean().optional(),
  })
  .superRefine((given, context) => {
    const fault = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if (given.templateId !== undefined) {
      for (const name of ['html', 'text', 'syntax'] as const)
        if (given[name] !== undefined) fault(name, 'cannot be combined with templateId');
      return;
    }
    if (given.html === undefined && given.text === undefined) fault('html', 'is required without templateId');
    if (given.subject === undefined) fault('subject', 'is required without templateId');
  })
  .meta({ id: 'SequenceSend' });

export const sequenceStep: z.ZodType<SequenceStep> = z
  .strictObject({
    wait: z
      .string()
      .refine((value) => waitMs(value) !== null, 'must be a number of m, h or d from 1m to 365d, such as 2d')
      .optional()
      .describe('A duration in minutes, hours or days: `30m`, `12h`, `2d`.'),
    send: send.optional().describe('Sends a message.'),
    when: segmentFilter.optional().describe('Continues if the contact matches this filter.'),
    otherwise: z
      .enum(['end', 'skip'])
      .optional()
      .describe(
        'With `when`, if the contact does not match: the sequence ends, or the next step is skipped.',
      ),
    end: z.literal(true).optional().describe('Ends the sequence.'),
  })
  .superRefine((given, context) => {
    exactlyOne(given, KINDS_OF_STEP, context);
    if (given.when !== undefined && given.otherwise === undefined)
      context.addIssue({ code: 'custom', path: ['otherwise'], message: 'is required with when' });
    if (given.when === undefined && given.otherwise !== undefined)
      context.addIssue({ code: 'custom', path: ['otherwise'], message: 'requires when' });
  })
  .meta({ id: 'SequenceStep', description: 'Exactly one of `wait`, `send`, `when` and `end`.' });

export const sequenceSteps = z.array(sequenceStep).max(MAX_STEPS);
export const sequenceGoal: z.ZodType<SegmentFilter> = segmentFilter;

/** A complete definition, as it is stored. */
export const sequenceDefinition: z.ZodType<SequenceDefinition> = z.strictObject({
  trigger: sequenceTrigger,
  steps: sequenceSteps,
  goal: sequenceGoal.optional(),
});

function exactlyOne<Name extends string>(
  given: Partial<Record<Name, unknown>>,
  names: readonly Name[],
  context: Pick<z.RefinementCtx, 'addIssue'>,
): void {
  const [first, second] = names.filter((name) => given[name] !== undefined);
  if (first === undefined)
    context.addIssue({ code: 'custom', path: [], message: `must have one of ${names.join(', ')}` });
  else if (second !== undefined)
    context.addIssue({ code: 'custom', path: [second], message: `cannot be combined with ${first}` });
}

/** The columns of a trigger. */
export function triggerColumns(trigger: SequenceTrigger): {
  trigger_kind: TriggerKind;
  trigger_key: string;
  offset_days: number;
} {
  for (const kind of KINDS_OF_TRIGGER) {
    const key = trigger[kind];
    if (key !== undefined)
      return { trigger_kind: kind, trigger_key: key, offset_days: trigger.offsetDays ?? 0 };
  }
  throw new Error('the trigger of a sequence is empty');
}

/** The group of the mail of a sequence: that of its trigger; null: it has none. */
export function groupOf({ joined, confirmed }: SequenceTrigger): string | null {
  return joined ?? confirmed ?? null;
}

/** Reads the stored form of a definition. */
export function readDefinition(stored: string): SequenceDefinition {
  // Sound: only `writeDefinition` and the import of accounts, which checks it, write it.
  return JSON.parse(stored) as SequenceDefinition;
}

/** The stored form of a definition. */
export function writeDefinition({ trigger, steps, goal }: SequenceDefinition): string {
  return JSON.stringify({ trigger, steps, ...(goal === undefined ? {} : { goal }) });
}
