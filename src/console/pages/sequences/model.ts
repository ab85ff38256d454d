import type { DataOf } from '../../operations.ts';
import type { IconName } from '../../parts/icon/icon-names.ts';

export const SEQUENCES = '/web-setup/sequences';
export const SEQUENCE = `${SEQUENCES}/{sequenceId}` as const;

export type Sequence = DataOf<typeof SEQUENCE>['sequence'];
export type Trigger = Sequence['trigger'];
export type Step = Sequence['steps'][number];
export type Filter = NonNullable<Step['when']>;

export const TRIGGER_KINDS = ['joined', 'confirmed', 'event', 'dateField', 'fieldSet'] as const;
export type TriggerKind = (typeof TRIGGER_KINDS)[number];

export const STEP_KINDS = ['send', 'wait', 'when', 'end'] as const;
export type StepKind = (typeof STEP_KINDS)[number];

export const STEP_ICONS = {
  send: 'send',
  wait: 'clock',
  when: 'funnel',
  end: 'circle-check',
} as const satisfies Record<StepKind, IconName>;

export function kindOfTrigger(trigger: Trigger): TriggerKind {
  return TRIGGER_KINDS.find((kind) => trigger[kind] !== undefined) ?? 'joined';
}

export function kindOfStep(step: Step): StepKind {
  return STEP_KINDS.find((kind) => step[kind] !== undefined) ?? 'end';
}

/** Conditions that the editor shows as fields; all others are edited as JSON. */
export const CONDITIONS = ['opened', 'notOpened', 'clicked', 'notClicked', 'field', 'group', 'json'] as const;
export type ConditionKind = (typeof CONDITIONS)[number];

export function kindOfCondition(filter: Filter): ConditionKind {
  const { opened, clicked, field, op, group, active } = filter;
  if (opened?.withinDays !== undefined) return 'opened';
  if (opened?.notWithinDays !== undefined) return 'notOpened';
  if (clicked?.withinDays !== undefined) return 'clicked';
  if (clicked?.notWithinDays !== undefined) return 'notClicked';
  if (field !== undefined && op === 'is') return 'field';
  return group !== undefined && active !== false ? 'group' : 'json';
}

/** The days of a condition about opens or clicks. */
export function daysOf({ opened, clicked }: Filter): number {
  const { withinDays, notWithinDays } = opened ?? clicked ?? {};
  return withinDays ?? notWithinDays ?? 7;
}

const UNITS = { m: 'sequences.minutes', h: 'sequences.hours', d: 'sequences.days' } as const;

/** `2d` as its number and the text of its unit. */
export function waitParts(wait: string) {
  const unit = wait.endsWith('m') ? 'm' : wait.endsWith('h') ? 'h' : 'd';
  return { count: Number(wait.slice(0, -1)), unit, text: UNITS[unit] } as const;
}
