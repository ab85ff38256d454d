import type { RequiredVariable } from '../../mail/compliance.ts';
import type { LiquidFault, LiquidPartials } from '../../mail/liquid.ts';
import type { Compiled } from '../../mail/mjml.ts';
import type { TemplateKind, TemplateProblem } from '../../mail/template.ts';

/* What the threads of templates are asked, and what they answer. */

/** The parts of a message in Liquid. */
export interface LiquidSource {
  subject: string;
  /** '' if the message is text only. */
  html: string;
  /** Null: derived from the html. */
  text: string | null;
  partials: LiquidPartials;
}

/** A part: its kind has its name. */
export type LiquidField = TemplateKind;

/** The values of one recipient. */
export interface LiquidCopyInput {
  variables: Readonly<Record<string, unknown>>;
  /** Names of variables that are empty without a value. */
  optional: readonly string[];
}

export type TemplateJob =
  | { kind: 'read'; source: LiquidSource }
  /** Answered with each copy, then with the end. */
  | {
      kind: 'render';
      source: LiquidSource;
      copies: readonly LiquidCopyInput[];
      /** Each part as one value, with the texts around it. */
      whole: boolean;
      /** Milliseconds of a part. */
      limitMs: number;
      /** Milliseconds of all copies. */
      budgetMs: number;
    }
  | { kind: 'mjml'; source: string };

/** A fault in a part. */
export interface FieldFault extends LiquidFault {
  field: LiquidField;
}

/** What is the same in content for all recipients. */
export interface LiquidRead {
  /** Texts around the values of each part that the content has. */
  texts: Partial<Record<LiquidField, string[]>>;
  /** Names of the variables of all parts, without those of the service. */
  names: string[];
  /** The variables of the service, by part. */
  service: Partial<Record<LiquidField, string[]>>;
}

/** A part of one recipient that cannot be rendered. */
export type LiquidProblem = { field: LiquidField } & ({ problem: TemplateProblem } | { fault: LiquidFault });

/**
 * What one recipient receives; `missing`: the required variables that the finished content does not show. Not determined of
 * whole parts.
 */
export type LiquidCopy =
  | { values: Partial<Record<LiquidField, string[]>>; missing: RequiredVariable[] }
  | { problems: LiquidProblem[] };

export type TemplateAnswer =
  | { kind: 'ready' }
  | { kind: 'read'; read: LiquidRead | { faults: FieldFault[] } }
  | { kind: 'copy'; copy: LiquidCopy }
  /** `slow`: the next copy exceeded its limits. */
  | { kind: 'end'; slow: boolean }
  | { kind: 'mjml'; compiled: Compiled };
