import { type Work, withoutPause } from '../../core/concurrency/slices.ts';
import type { Refusal } from '../../core/refusal.ts';
import type { SharedContent, SharedPart } from '../../mail/shared-content.ts';
import {
  fillingShared,
  joinShared,
  type SharedTemplate,
  sharingTemplate,
} from '../../mail/shared-template.ts';
import { subjectRefusal } from '../request.ts';
import {
  type FieldProblem,
  findingHiddenCompliance,
  MAX_RENDERED,
  type PreparedTemplate,
  type TemplatePart,
  variableRefusal,
} from './render.ts';

/*
 * Renders a template for the copies of a campaign: the parts that are equal for all recipients once, then the part of
 * each recipient.
 */

/** A template into which the values that are equal for all recipients were inserted. */
export interface SharedRendering {
  prepared: PreparedTemplate;
  parts: { field: TemplatePart['field']; first: number; template: SharedTemplate }[];
}

/**
 * Inserts the values that are equal for all recipients, in steps. `isOwn`: variables whose values differ. A refusal: the
 * template cannot be rendered for any recipient.
 */
export function* sharingPrepared(
  prepared: PreparedTemplate,
  variables: Readonly<Record<string, unknown>>,
  isOwn: (name: string) => boolean,
): Work<SharedRendering | Refusal> {
  const problems: FieldProblem[] = [];
  const shared: SharedRendering = { prepared, parts: [] };
  let first = 0;
  for (const { field, kind, template } of prepared.parts) {
    const service = kind === 'html' ? prepared.service.html : prepared.service.text;
    const result = yield* sharingTemplate(template, kind, variables, service, { limit: MAX_RENDERED, isOwn });
    if (Array.isArray(result)) problems.push(...result.map((problem) => ({ field, problem })));
    else {
      shared.parts.push({ field, first, template: result });
      first += result.values.length;
    }
  }
  return problems.length > 0 ? variableRefusal(problems, true) : shared;
}

/** The part of a shared rendering that differs for a recipient. */
export interface CopyRendering {
  subject: string;
  /** Values of the placeholders of all parts, in the order of the parts. */
  values: string[];
}

/** Renders the part of one recipient; `variables` are all variables. */
export function fillCopy(
  { prepared, parts }: SharedRendering,
  variables: Readonly<Record<string, unknown>>,
  optional: ReadonlySet<string>,
): CopyRendering | Refusal {
  const problems: FieldProblem[] = [];
  const values: string[] = [];
  let subject = '';
  for (const { field, template } of parts) {
    const filled = withoutPause(fillingShared(template, variables, { limit: MAX_RENDERED, optional }));
    if ('problems' in filled) problems.push(...filled.problems.map((problem) => ({ field, problem })));
    else {
      values.push(...filled.values);
      if (field === 'subject') subject = joinShared(template, filled.values);
    }
  }
  if (problems.length > 0) return variableRefusal(problems, true);
  const refusal =
    subjectRefusal(subject) ?? withoutPause(findingHiddenCompliance(prepared, variables, optional));
  return refusal ?? { subject, values };
}

/** The parts in their stored form. */
export function sharedParts({ parts }: SharedRendering): Pick<SharedContent, 'subject' | 'html' | 'text'> {
  const part = (wanted: TemplatePart['field']): SharedPart | null => {
    const found = parts.find(({ field }) => field === wanted);
    return found === undefined
      ? null
      : { first: found.first, holes: found.template.holes, texts: found.template.texts };
  };
  return {
    subject: part('subject') ?? { first: 0, holes: [], texts: [''] },
    html: part('html'),
    text: part('text'),
  };
}
