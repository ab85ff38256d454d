import { invalid, isRefusal, type Refusal } from '../core/refusal.ts';
import type { UseCase } from '../store/domains/domains.ts';
import type { Tables } from '../store/tables.ts';
import type { TemplateType } from '../store/templates.ts';
import { findTemplate } from './templates.ts';

/** What a send says, its variables not yet filled in: in its own words, or in those of a template kept here. */
export interface Wording {
  subject: string;
  /** '' when the message is text only. */
  html: string;
  /** Null: derived from the html. */
  text: string | null;
}

export interface TemplateWording {
  templateId: string;
  /** Stands over the template's own; null: none given. */
  subject: string | null;
}

const TYPE_FOR: Record<UseCase, TemplateType> = { tx: 'transactional', mk: 'marketing' };

/** The words themselves, or what is wrong with the template named: unknown, for the other stream, no subject. */
export function wordingOf(
  tables: Tables,
  sender: { account: { account_id: string }; useCase: UseCase },
  wanted: Wording | TemplateWording,
): Wording | Refusal {
  if (!('templateId' in wanted)) return wanted;
  const template = findTemplate(tables, sender.account.account_id, wanted.templateId);
  if (isRefusal(template)) return template;
  if (template.type !== null && template.type !== TYPE_FOR[sender.useCase]) {
    const message = `is a ${template.type} template; this is a ${TYPE_FOR[sender.useCase]} send`;
    return invalid('templateId', message);
  }
  const subject = wanted.subject ?? template.subject;
  if (subject === null) return invalid('subject', 'is required: the template has none');
  return { subject, html: template.html, text: template.text };
}
