import { invalid, type Refusal } from '../../core/refusal.ts';
import type { Tables } from '../../store/tables.ts';

/**
 * The id of the template that a program means: by its id, or by its name. Programs that were written for another provider
 * continue to use the id or alias of that provider when the template has it as its name. An unknown one is returned
 * unchanged: the send path refuses it.
 */
export function templateIdOf(
  tables: Pick<Tables, 'templates'>,
  accountId: string,
  reference: string,
): string | Refusal {
  const [named, ...others] = tables.templates.idsByName(accountId, reference);
  if (named === undefined || tables.templates.get(accountId, reference) !== null) return reference;
  return others.length === 0
    ? named.template_id
    : invalid('templateId', `names several templates: ${reference.slice(0, 100)}; use the id`);
}
