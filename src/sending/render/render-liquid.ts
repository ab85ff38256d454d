import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { isLiquid, liquidSource, readLiquid, syntaxRefusal, unrunRefusal } from '../../templates/liquid.ts';
import type { TemplateContent } from '../../templates/templates.ts';
import type { LiquidProblem } from '../../templates/thread/jobs.ts';
import type { TemplateThreads } from '../../templates/thread/threads.ts';
import { type FieldProblem, variableRefusal } from './render.ts';

/*
 * Renders content in Liquid in a thread (templates/thread). The result is content whose only variables are those of the service,
 * as marks: the reader of marks parses it, and it is checked like any other content.
 */

/** Renders content for one recipient; content of the simple syntax is returned as it is. */
export async function renderLiquidContent(
  threads: TemplateThreads,
  accountId: string,
  content: TemplateContent,
  variables: Readonly<Record<string, unknown>>,
  /** Which variables are empty without a value. Default: none. */
  isOptional?: (name: string) => boolean,
): Promise<TemplateContent | Refusal> {
  if (!isLiquid(content)) return content;
  let optional: string[] = [];
  if (isOptional !== undefined) {
    const read = await readLiquid(threads, accountId, content);
    if (isRefusal(read)) return read;
    optional = read.names.filter(isOptional);
  }
  const copies = [{ variables, optional }];
  const [copy] = await threads.render(accountId, liquidSource(content), copies, { whole: true });
  if (copy === undefined) return unrunRefusal({ unrun: 'slow' });
  if ('unrun' in copy) return unrunRefusal(copy);
  if ('problems' in copy) return problemRefusal(copy.problems, isOptional !== undefined);
  const { subject, html, text } = copy.values;
  return { subject: subject?.[0] ?? '', html: html?.[0] ?? '', text: text?.[0] ?? null };
}

/** Why a recipient's content cannot be rendered. `ofContacts`: the variables are fields of contacts. */
export function problemRefusal(problems: readonly LiquidProblem[], ofContacts: boolean): Refusal {
  const faults = problems.flatMap((one) => ('fault' in one ? [{ field: one.field, ...one.fault }] : []));
  if (faults.length > 0) return syntaxRefusal(faults);
  const ofVariables = problems.flatMap((one): FieldProblem[] =>
    'problem' in one ? [{ field: one.field, problem: one.problem }] : [],
  );
  return variableRefusal(ofVariables, ofContacts);
}
