import { invalid, isRefusal, type Refusal } from '../core/refusal.ts';
import type { Stream } from '../store/domains/domains.ts';
import type { Tables } from '../store/tables.ts';
import type { TemplateType } from '../store/templates.ts';
import { findTemplate } from './templates.ts';

/** What a send is rendered from: content in the request, or a stored template. */
export type TemplateSource = TemplateContent | TemplateReference;

export interface TemplateContent {
  subject: string;
  /** '' when the message is text only. */
  html: string;
  /** Null: derived from the html. */
  text: string | null;
}

export interface TemplateReference {
  templateId: string;
  /** Replaces the subject of the template; null: the template's is used. */
  subject: string | null;
}

const TYPE_OF_STREAM: Record<Stream, TemplateType> = { tx: 'transactional', mk: 'marketing' };

/** Refuses a template that is unknown, is for the other stream, or has no subject where none is given. */
export function resolveTemplate(
  tables: Tables,
  sender: { account: { account_id: string }; useCase: Stream },
  source: TemplateSource,
): TemplateContent | Refusal {
  if (!('templateId' in source)) return source;
  const template = findTemplate(tables, sender.account.account_id, source.templateId);
  if (isRefusal(template)) return template;
  if (template.type !== null && template.type !== TYPE_OF_STREAM[sender.useCase]) {
    const message = `is a ${template.type} template; this is a ${TYPE_OF_STREAM[sender.useCase]} send`;
    return invalid('templateId', message);
  }
  const subject = source.subject ?? template.subject;
  if (subject === null) return invalid('subject', 'is required: the template has none');
  return { subject, html: template.html, text: template.text };
}
