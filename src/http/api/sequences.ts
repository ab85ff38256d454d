import * as z from 'zod';
import {
  MAX_STEPS,
  sequenceGoal,
  sequenceSteps,
  sequenceTrigger,
} from '../../audience/sequences/definition.ts';
import { END_REASONS } from '../../campaigns/sequences/run.ts';
import { type SequenceDetail, type Sequences, WAITS } from '../../campaigns/sequences/sequences.ts';
import { iso, isoOrNull } from '../../core/clock.ts';
import { isRefusal, type RefusalCode } from '../../core/refusal.ts';
import {
  type ListedPerson,
  PERSON_STATES,
  SEQUENCE_STATUSES,
  type StepCounts,
} from '../../store/campaigns/sequences.ts';
import { mapResult, type Route, routesOf } from '../route.ts';
import { definedFields, resourceName } from './fields.ts';
import { nameSearch, pageOf, pagesBySeq, paging, seqEnd } from './paging.ts';

const route = routesOf({ tag: 'Sequences', scope: 'setup', permissions: ['read', 'send'] });

const status = z.enum(SEQUENCE_STATUSES).meta({ id: 'SequenceStatus' });

const stepCounts = z
  .object({
    step: z.int().describe('Index of the step, from 0.'),
    people: z.int().describe('People in progress for whom this is the next step.'),
    sent: z.int().describe('Messages of this step; the following counts are of these.'),
    skipped: z.int().describe('Messages that could not be rendered for their contact; the contact moved on.'),
    delivered: z.int(),
    bounced: z.int(),
    complained: z.int(),
    opened: z.int().describe('Messages that a person opened.'),
    clicked: z.int().describe('Messages with a link that a person clicked.'),
    unsubscribed: z.int(),
  })
  .meta({ id: 'SequenceStepCounts' });

export const sequenceSchema = z
  .object({
    sequenceId: z.string(),
    name: resourceName,
    status,
    pausedReason: z
      .string()
      .nullable()
      .describe(
        'Why the service paused it, such as a domain that is not verified any more; `null`: it did not. People still enter, and wait.',
      ),
    version: z.int().describe('Rises with each change of an active or paused sequence.'),
    trigger: sequenceTrigger,
    steps: sequenceSteps,
    goal: sequenceGoal.nullable(),
    people: z.object({
      inProgress: z.int(),
      inEarlierVersions: z.int().describe('Those of `inProgress` who began before the last change.'),
      ended: z.record(z.string(), z.int()).describe(`By reason: ${END_REASONS.join(', ')}.`),
      missed: z.int().describe('Triggers while as many people as possible were in the sequence.'),
    }),
    stepCounts: z.array(stepCounts).describe('Of the current version, in the order of the steps.'),
    activatedAt: z.iso.datetime().nullable().describe('When it was last activated.'),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'Sequence' });

export type Sequence = z.output<typeof sequenceSchema>;

const personSchema = z
  .object({
    contactIdentifier: z.string(),
    email: z.string().nullable(),
    state: z.enum(PERSON_STATES).describe('`scheduled`: the date of the contact is in the future.'),
    version: z.int(),
    step: z.int().describe('The next step, or the one at which it ended; from 0.'),
    dueAt: z.iso.datetime().nullable().describe('When the next step is due; `null`: it ended.'),
    reason: z.string().nullable().describe('Why it ended.'),
    waitsFor: z
      .enum(WAITS)
      .nullable()
      .describe(
        'Why a person whose step is due does not move on. `paused`: the sequence is not active (`pausedReason`); `account_disabled`; `stored_bytes`, `message_limit`: the account has reached this limit; `service_busy`: the queue or the disk of the service is nearly full; `failing`: an error of the service, which tries again; `person_paused`: the person has paused marketing mail.',
      ),
    enteredAt: z.iso.datetime(),
    endedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: 'SequencePerson' });

const input = {
  name: resourceName,
  trigger: sequenceTrigger,
  steps: sequenceSteps.describe(`At most ${MAX_STEPS}. A contact takes them in this order.`),
  goal: sequenceGoal
    .nullable()
    .optional()
    .describe('A contact that matches this filter leaves the sequence before its next step.'),
  status: status
    .optional()
    .describe('`active` activates the sequence, `paused` pauses it. Default of a new one: `draft`.'),
};

/** Refusals of a sequence whose messages could not be sent. */
const NOT_READY: readonly RefusalCode[] = [
  'KEY_NOT_ALLOWED',
  'SUBSCRIPTION_GROUP_NOT_FOUND',
  'TEMPLATE_NOT_FOUND',
  'DOMAIN_NOT_REGISTERED',
  'DOMAIN_NOT_VERIFIED',
  'USE_CASE_MISMATCH',
  'COMPLIANCE_TEMPLATE_MISSING',
  'COMPANY_ADDRESS_MISSING',
  'TEMPLATE_VARIABLE_MISSING',
  'TEMPLATE_SYNTAX',
];
const result = z.object({ sequence: sequenceSchema }).meta({ id: 'SequenceResult' });

/** `/web-setup/sequences`: messages that a contact receives one after the other. */
export function sequenceRoutes({ sequences }: { sequences: Sequences }): Route[] {
  const present = (detail: SequenceDetail) => ({ sequence: presentSequence(sequences, detail) });
  const one = { data: result, example: { sequence: SEQUENCE_EXAMPLE } };
  const update = (method: 'PUT' | 'PATCH', operationId: string) =>
    route(`${method} /web-setup/sequences/{sequenceId}`, {
      operationId,
      refusesTestKeys: 'always',
      summary: 'Update a sequence',
      description:
        'Replaces the fields that are given; `goal: null` removes the goal. A change of `trigger`, `steps` or `goal` of a sequence that was activated is a new version: people in progress finish the one that they began.',
      body: z
        .object({
          ...input,
          name: input.name.optional(),
          trigger: input.trigger.optional(),
          steps: input.steps.optional(),
        })
        .meta({ id: 'SequencePatch' }),
      readOnly: ['sequenceId', 'version', 'people', 'stepCounts', 'pausedReason', 'activatedAt'],
      example: { name: SEQUENCE_EXAMPLE.name },
      limit: 'send',
      response: { description: 'The updated sequence.', ...one },
      refusals: ['SEQUENCE_NOT_FOUND', 'INVALID_STATE', ...NOT_READY],
      handle: async ({ caller, params: { sequenceId }, body }) =>
        mapResult(await sequences.update(caller, sequenceId, definedFields(body)), present),
    });
  const action = (
    name: 'activate' | 'pause',
    summary: string,
    description: string,
    refusals: RefusalCode[],
  ) =>
    route(`POST /web-setup/sequences/{sequenceId}/${name}`, {
      operationId: `${name}Sequence`,
      refusesTestKeys: name === 'activate' ? 'always' : undefined,
      summary,
      description,
      // A pause stores nothing.
      stores: () => name === 'activate',
      response: { description: 'The sequence.', ...one },
      refusals: ['SEQUENCE_NOT_FOUND', 'INVALID_STATE', ...refusals],
      handle: async ({ caller, params: { sequenceId } }) =>
        mapResult(await sequences[name](caller, sequenceId), present),
    });
  return [
    route('GET /web-setup/sequences', {
      operationId: 'listSequences',
      summary: 'List sequences, newest first',
      query: z.object({ search: nameSearch, ...paging }),
      page: pagesBySeq('sequences'),
      response: pageOf('sequences', sequenceSchema, SEQUENCE_EXAMPLE),
      narrowBy: ['limit'],
      handle: async ({ caller: { accountId }, query: { search, limit }, after }) => {
        const page = await sequences.list({ accountId, search, beforeSeq: after, limit });
        return {
          sequences: page.rows.map((detail) => presentSequence(sequences, detail)),
          ...seqEnd(page),
        };
      },
    }),
    route('POST /web-setup/sequences', {
      operationId: 'createSequence',
      refusesTestKeys: 'always',
      summary: 'Create a sequence',
      body: z.object(input).meta({ id: 'SequenceInput' }),
      example: {
        name: SEQUENCE_EXAMPLE.name,
        trigger: SEQUENCE_EXAMPLE.trigger,
        steps: SEQUENCE_EXAMPLE.steps,
      },
      limit: 'send',
      response: { status: 201, description: 'The created sequence.', ...one },
      refusals: ['LIMIT_REACHED', ...NOT_READY],
      handle: async ({ caller, body: { goal, ...body } }) =>
        mapResult(await sequences.create(caller, { ...body, goal: goal ?? undefined }), present),
    }),
    route('GET /web-setup/sequences/{sequenceId}', {
      operationId: 'getSequence',
      summary: 'Get a sequence',
      response: { description: 'The sequence.', ...one },
      refusals: ['SEQUENCE_NOT_FOUND'],
      handle: ({ caller, params: { sequenceId } }) =>
        mapResult(sequences.get(caller.accountId, sequenceId), present),
    }),
    update('PUT', 'updateSequence'),
    update('PATCH', 'patchSequence'),
    route('DELETE /web-setup/sequences/{sequenceId}', {
      operationId: 'deleteSequence',
      summary: 'Delete a sequence',
      description: 'People in progress receive nothing more from it. Messages that are queued are sent.',
      response: {
        description: 'The sequence was deleted.',
        data: z.object({ message: z.string(), sequenceId: z.string() }),
        example: { message: 'The sequence has been deleted.', sequenceId: SEQUENCE_EXAMPLE.sequenceId },
      },
      refusals: ['SEQUENCE_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params: { sequenceId } }) => {
        const removed = await sequences.remove(caller.accountId, sequenceId);
        return isRefusal(removed) ? removed : { message: 'The sequence has been deleted.', sequenceId };
      },
    }),
    action(
      'activate',
      'Activate a sequence',
      'Contacts enter from now on, and people in progress move on. All messages are checked first. An active sequence is unchanged.',
      [...NOT_READY],
    ),
    action(
      'pause',
      'Pause a sequence',
      'Nobody moves on and nobody enters until it is activated again. Messages that are queued are sent.',
      [],
    ),
    route('GET /web-setup/sequences/{sequenceId}/people', {
      operationId: 'listSequencePeople',
      summary: 'List the people in a sequence, newest first',
      query: z.object({
        state: z.enum(PERSON_STATES).optional(),
        step: z.coerce
          .number()
          .int()
          .min(0)
          .max(MAX_STEPS)
          .optional()
          .describe('Only people in progress for whom this is the next step.'),
        version: z.coerce
          .number()
          .int()
          .min(1)
          .optional()
          .describe('With `step`: of this version; default: the current one.'),
        ...paging,
      }),
      page: pagesBySeq('sequence-people'),
      response: pageOf('people', personSchema, PERSON_EXAMPLE),
      refusals: ['SEQUENCE_NOT_FOUND'],
      narrowBy: ['limit'],
      handle: async ({ caller, params: { sequenceId }, query: { limit, ...filter }, after }) => {
        const page = await sequences.people(caller.accountId, sequenceId, {
          ...definedFields(filter),
          beforeSeq: after,
          limit,
        });
        return isRefusal(page) ? page : { people: page.rows.map(presentPerson), ...seqEnd(page) };
      },
    }),
  ];
}

/** A sequence as the API returns it. */
export function presentSequence(sequences: Sequences, { row, definition }: SequenceDetail): Sequence {
  const { steps, ends } = sequences.counts(row);
  const people = (counts: readonly StepCounts[]) => counts.reduce((sum, count) => sum + count.people, 0);
  const current = steps.filter(({ version }) => version === row.version);
  return {
    sequenceId: row.sequence_id,
    name: row.name,
    status: row.status,
    pausedReason: row.paused_reason,
    version: row.version,
    trigger: definition.trigger,
    steps: definition.steps,
    goal: definition.goal ?? null,
    people: {
      inProgress: people(steps),
      inEarlierVersions: people(steps) - people(current),
      ended: Object.fromEntries(ends.map(({ reason, people }) => [reason, people])),
      missed: row.missed,
    },
    stepCounts: definition.steps.map((_, step) =>
      presentCounts(
        step,
        current.find((counts) => counts.step === step),
      ),
    ),
    activatedAt: isoOrNull(row.activated_at),
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  };
}

function presentCounts(step: number, counts: StepCounts | undefined): z.output<typeof stepCounts> {
  return {
    step,
    people: counts?.people ?? 0,
    sent: counts?.queued ?? 0,
    skipped: counts?.skipped ?? 0,
    delivered: counts?.delivered ?? 0,
    bounced: counts?.bounced ?? 0,
    complained: counts?.complained ?? 0,
    opened: counts?.unique_opened ?? 0,
    clicked: counts?.unique_clicked ?? 0,
    unsubscribed: counts?.unsubscribed ?? 0,
  };
}

function presentPerson(
  row: ListedPerson & Pick<z.output<typeof personSchema>, 'waitsFor'>,
): z.output<typeof personSchema> {
  return {
    contactIdentifier: row.email_hash ?? row.phone_hash ?? '',
    email: row.email,
    state: row.state,
    version: row.version,
    step: row.step,
    dueAt: row.state === 'ended' ? null : iso(row.due_at),
    reason: row.reason,
    waitsFor: row.waitsFor,
    enteredAt: iso(row.entered_at),
    endedAt: isoOrNull(row.ended_at),
  };
}

const SEQUENCE_EXAMPLE: z.output<typeof sequenceSchema> = {
  sequenceId: 'seq_1769860800000_4w6e8r0t2y5u',
  name: 'Welcome',
  status: 'active',
  pausedReason: null,
  version: 1,
  trigger: { confirmed: 'sgroup_1769860800000_5t7y9u1i3o5p' },
  steps: [
    {
      send: {
        from: 'Example Shop <news@shop.example.com>',
        templateId: 'template_1769860800000_1q2w3e4r5t6y',
      },
    },
    { wait: '3d' },
    { when: { not: { clicked: { withinDays: 3 } } }, otherwise: 'end' },
    {
      send: {
        from: 'Example Shop <news@shop.example.com>',
        templateId: 'template_1769860800000_7u8i9o0p1a2s',
      },
    },
  ],
  goal: { field: 'customFields.orders', op: 'greaterThan', value: 0 },
  people: { inProgress: 41, inEarlierVersions: 0, ended: { completed: 310, goal: 52 }, missed: 0 },
  stepCounts: [0, 1, 2, 3].map((step) => ({
    step,
    people: step === 2 ? 41 : 0,
    sent: step === 0 ? 403 : step === 3 ? 120 : 0,
    skipped: 0,
    delivered: step === 0 ? 401 : step === 3 ? 120 : 0,
    bounced: step === 0 ? 2 : 0,
    complained: 0,
    opened: step === 0 ? 230 : step === 3 ? 51 : 0,
    clicked: step === 0 ? 96 : step === 3 ? 17 : 0,
    unsubscribed: step === 0 ? 3 : 0,
  })),
  activatedAt: '2026-01-31T12:00:00.000Z',
  createdAt: '2026-01-31T12:00:00.000Z',
  updatedAt: '2026-01-31T12:00:00.000Z',
};

const PERSON_EXAMPLE: z.output<typeof personSchema> = {
  contactIdentifier: 'email_55502f40dc8b7c769880b10874abc9d0',
  email: 'ada@example.net',
  state: 'active',
  version: 1,
  step: 2,
  dueAt: '2026-02-03T12:00:00.000Z',
  reason: null,
  waitsFor: null,
  enteredAt: '2026-01-31T12:00:00.000Z',
  endedAt: null,
};
