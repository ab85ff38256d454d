import { inSlices, type Work } from '../core/concurrency/slices.ts';
import { invalid, isRefusal, type Refusal } from '../core/refusal.ts';
import type { ComplianceVariables, RequiredVariable } from '../mail/compliance.ts';
import { endsAtLineStart, parseTemplate, startsOwnLine, type TemplateKind } from '../mail/template.ts';
import { complianceMissing, type PreparedTemplate } from '../sending/render/render.ts';
import { problemRefusal } from '../sending/render/render-liquid.ts';
import type { CopyRendering, SharedRendering } from '../sending/render/render-shared.ts';
import { subjectRefusal } from '../sending/request.ts';
import type { CampaignMember } from '../store/campaigns/campaign-sends.ts';
import { joinPart, type LiquidContent, liquidSource, unrunRefusal } from '../templates/liquid.ts';
import type { LiquidCopy, LiquidField, LiquidRead } from '../templates/thread/jobs.ts';
import type { TemplateThreads, Unrun } from '../templates/thread/threads.ts';
import { contactVariables } from './fields.ts';
import type { CampaignMail } from './mail.ts';

/*
 * Campaigns in Liquid. A thread renders the members ahead of the unit of work that stores their messages. The text at the top level of
 * the template is stored once; each message stores the values of its outputs and tags.
 */

const FIELDS = ['subject', 'html', 'text'] as const satisfies LiquidField[];
/** Characters of the values of one member: they are packed in the unit of work. */
const MAX_OWN_CHARACTERS = 512 * 1024;

function* shareInSteps({ texts }: LiquidRead, prepared: PreparedTemplate): Work<SharedRendering> {
  const shared: SharedRendering = { prepared, parts: [] };
  let first = 0;
  for (const field of FIELDS) {
    const own = texts[field];
    if (own === undefined) continue;
    const inserted: string[] = [];
    for (const [index, text] of own.entries()) {
      inserted.push(insertService(text, field, prepared.service, index === 0));
      yield;
    }
    const holes = inserted.slice(1).map((_, index) => index);
    const length = inserted.reduce((sum, text) => sum + text.length, 0);
    shared.parts.push({
      field,
      first,
      template: { kind: field, texts: inserted, holes, values: [], length },
    });
    first += holes.length;
  }
  return shared;
}

/** Replaces marks by the values of the service. `isLineStart`: whether the text begins a line. */
function insertService(
  text: string,
  kind: TemplateKind,
  service: ComplianceVariables,
  isLineStart: boolean,
): string {
  const { texts, slots } = parseTemplate(text, 'marks');
  const values = kind === 'html' ? service.html : service.text;
  let inserted = texts[0] ?? '';
  for (const [index, slot] of slots.entries()) {
    const value = values[slot.name as keyof typeof values] ?? '';
    const breaks = startsOwnLine(kind, slot, value) && !endsAtLineStart(inserted, isLineStart);
    inserted += `${breaks ? '\n' : ''}${value}${texts[index + 1] ?? ''}`;
  }
  return inserted;
}

/** A member as it was when it was rendered. */
export interface RenderedMember {
  /** JSON of the fields of the contact. */
  fields: string;
  result: LiquidCopy | Unrun;
}

/** The members that were rendered ahead, by `seq`. */
export type RenderedMembers = ReadonlyMap<number, RenderedMember>;

/** Renders the first of the members, as many as fit into a turn of the account. Each has an address. */
export async function renderMembers(
  threads: TemplateThreads,
  accountId: string,
  mail: CampaignMail & { wording: LiquidContent },
  members: readonly CampaignMember[],
): Promise<RenderedMembers> {
  const copies = members.map((member) => ({
    variables: { ...mail.variables, ...contactVariables(member) },
    optional: mail.optional,
  }));
  const results = await threads.render(accountId, liquidSource(mail.wording), copies, { whole: false });
  return new Map(
    results.flatMap((result, index): [number, RenderedMember][] => {
      const member = members[index];
      if (member === undefined || ('unrun' in result && result.unrun === 'stopping')) return [];
      return [[member.seq, { fields: fieldsOf(member), result }]];
    }),
  );
}

function fieldsOf(member: CampaignMember): string {
  return JSON.stringify(contactVariables(member));
}

/** The part of a member; null: it was not rendered yet, or its contact has changed since. */
export function renderedCopy(
  { prepared, parts }: SharedRendering,
  rendered: RenderedMembers,
  member: CampaignMember,
): CopyRendering | Refusal | null {
  const found = rendered.get(member.seq);
  if (found === undefined || found.fields !== fieldsOf(member)) return null;
  const { result } = found;
  if ('unrun' in result) return unrunRefusal(result);
  if ('problems' in result) return problemRefusal(result.problems, true);
  const lacking = prepared.required.filter((name: RequiredVariable) => result.missing.includes(name));
  if (lacking.length > 0) {
    const isHtml = parts.some(({ field }) => field === 'html');
    return complianceMissing(lacking, isHtml ? 'html' : 'text');
  }
  const values: string[] = [];
  let subject = '';
  for (const { field, template } of parts) {
    const own = (result.values[field] ?? []).map((value, index) =>
      insertService(
        value,
        field,
        prepared.service,
        endsAtLineStart(template.texts[index] ?? '', index === 0),
      ),
    );
    values.push(...own);
    if (field === 'subject') subject = joinPart(template.texts, own);
  }
  if (values.reduce((sum, value) => sum + value.length, 0) > MAX_OWN_CHARACTERS)
    return invalid(
      'html',
      `must have at most ${MAX_OWN_CHARACTERS} characters that differ between recipients`,
    );
  const refusal = subjectRefusal(subject);
  return isRefusal(refusal) ? refusal : { subject, values };
}

/** The texts that all copies share, with the values of the service. Works in turns of the account. */
export function shareLiquid(
  read: LiquidRead,
  prepared: PreparedTemplate,
  accountId: string,
): Promise<SharedRendering> {
  return inSlices(shareInSteps(read, prepared), accountId);
}
