import { invalid, type Refusal, refuse } from '../core/refusal.ts';
import type { LiquidPartials } from '../mail/liquid.ts';
import type { FieldFault, LiquidRead, LiquidSource } from './thread/jobs.ts';
import type { TemplateThreads, Unrun } from './thread/threads.ts';

/* Content in Liquid: what is refused, in the words of a response. */

/** What a message is rendered from. */
export interface TemplateContent {
  subject: string;
  /** '' when the message is text only. */
  html: string;
  /** Null: derived from the html. */
  text: string | null;
  /** Set when the syntax is Liquid: the partials that it uses. Part of the stored form of campaigns. */
  liquid?: LiquidPartials;
}

/** Content whose variables and tags are those of Liquid. */
export interface LiquidContent extends TemplateContent {
  liquid: LiquidPartials;
}

export function isLiquid(content: TemplateContent): content is LiquidContent {
  return content.liquid !== undefined;
}

export function liquidSource({ subject, html, text, liquid }: LiquidContent): LiquidSource {
  return { subject, html, text, partials: liquid };
}

/** Parses content; refused when it is not valid, or uses in its subject what only html and text can contain. */
export async function readLiquid(
  threads: Pick<TemplateThreads, 'read'>,
  accountId: string,
  content: LiquidContent,
): Promise<LiquidRead | Refusal> {
  const read = await threads.read(accountId, liquidSource(content));
  if ('unrun' in read) return unrunRefusal(read);
  if ('faults' in read) return syntaxRefusal(read.faults);
  const [inSubject] = read.service.subject ?? [];
  return inSubject === undefined
    ? read
    : invalid('subject', `must not contain {{ ${inSubject} }}, which is for html and text only`);
}

/** Names the place of each fault. */
export function syntaxRefusal(faults: readonly FieldFault[]): Refusal {
  const details = faults.map(({ field, message, line, column, partial }) => {
    const inPartial = partial === null ? '' : `partial "${partial}", `;
    const place = line === 0 ? inPartial : `${inPartial}line ${line}, column ${column}: `;
    return { field, message: `${place}${message}` };
  });
  const sentence = details.map(({ field, message }) => `${field}: ${message}`).join('; ');
  return refuse('TEMPLATE_SYNTAX', sentence, { details });
}

/** Why a thread did not run a template. */
export function unrunRefusal({ unrun }: Unrun): Refusal {
  return unrun === 'slow'
    ? refuse(
        'TEMPLATE_SYNTAX',
        'The template takes too long, or too much memory: use fewer and shorter loops',
      )
    : refuse('UNAVAILABLE', 'The service is shutting down');
}

/** Compiles MJML to html. */
export async function compileMjml(
  threads: Pick<TemplateThreads, 'compile'>,
  accountId: string,
  source: string,
): Promise<string | Refusal> {
  const compiled = await threads.compile(accountId, source);
  if ('html' in compiled) return compiled.html;
  if ('unrun' in compiled)
    return compiled.unrun === 'slow'
      ? refuse('TEMPLATE_SYNTAX', 'mjml: the source takes too long, or too much memory', {
          details: [{ field: 'mjml', message: 'takes too long, or too much memory' }],
        })
      : unrunRefusal(compiled);
  const details = compiled.faults.map(({ line, element, message }) => {
    const place = line === 0 ? '' : `line ${line}: `;
    return { field: 'mjml', message: `${place}${element === null ? '' : `${element} `}${message}` };
  });
  const sentence = details.map(({ message }) => `mjml: ${message}`).join('; ');
  return refuse('TEMPLATE_SYNTAX', sentence, { details });
}

/** The text of a part with the values of a recipient. */
export function joinPart(texts: readonly string[], values: readonly string[]): string {
  return texts.map((text, index) => text + (values[index] ?? '')).join('');
}
