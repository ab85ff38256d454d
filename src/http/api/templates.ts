import { z } from 'zod';
import { isRefusal } from '../../core/refusal.ts';
import type { TemplateRow } from '../../store/templates.ts';
import { contentFault, shownTemplate, type Templates, templateWarnings } from '../../templates/templates.ts';
import { subjectTemplateFault } from '../../templates/text.ts';
import { successBody } from '../answers.ts';
import { readPageKey } from '../page-key.ts';
import { type Answer, type Route, type RouteDescription, route } from '../route.ts';
import { pageEnd, pageEndForm, pagingWide } from './paging.ts';
import { line, lines, withoutUndefined } from './text-form.ts';

/** `/web-setup/templates`: mails that are kept here, which a send may name in place of its own texts. */
export function templateRoutes({ templates }: { templates: Templates }): Route[] {
  return [...allTemplates(templates), ...oneTemplate(templates)];
}

const COMMON = { tag: 'Templates', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ templateId: z.string() });

const fields = {
  type: z
    .enum(['transactional', 'marketing'])
    .nullable()
    .optional()
    .describe('The stream it is for: sends of the other one are refused. `null`: for both.'),
  subject: line(998)
    .superRefine((subject, context) => {
      const message = subjectTemplateFault(subject);
      if (message !== null) context.addIssue({ code: 'custom', message });
    })
    .nullable()
    .optional()
    .describe('May hold `{{name}}`; `null`: every send gives its own.'),
  text: lines().nullable().optional().describe('Plain text version; made from the html when absent.'),
};
const name = line(200);
const html = lines()
  .min(1)
  .nullable()
  .optional()
  .describe(
    'May hold `{{name}}`, and must hold the compliance variables to be sent. Left out or `null`, with a `text`: its mail is text only.',
  );

/** What a template may hold when it is created. */
export const templateForm = z.object({ name, ...fields, html });

const template = z.object({
  templateId: z.string(),
  name: z.string(),
  type: z.enum(['transactional', 'marketing']).nullable(),
  subject: z.string().nullable(),
  html: z.string().describe('Empty when its mail is text only.'),
  text: z.string().nullable(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
const one = z.object({ template });

function allTemplates(templates: Templates): Route[] {
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/templates',
      operationId: 'listTemplates',
      summary: 'Templates, newest first',
      description: 'A page may hold fewer than `limit` when the templates are large.',
      query: z.object(pagingWide),
      answers: {
        200: {
          description: 'A page of templates.',
          data: z.object({ templates: z.array(template), ...pageEndForm }),
          example: { templates: [EXAMPLE], count: 1 },
        },
      },
      refusals: [],
      narrowBy: ['limit'],
      handle: async ({ caller, query }) => {
        const beforeSeq = readPageKey('templates', query.lastKey);
        if (isRefusal(beforeSeq)) return beforeSeq;
        const page = await templates.list({ accountId: caller.accountId, beforeSeq, limit: query.limit });
        return {
          status: 200,
          data: { templates: page.rows.map(shownTemplate), ...pageEnd('templates', page) },
        };
      },
    }),
    route({
      ...COMMON,
      method: 'POST',
      path: '/web-setup/templates',
      operationId: 'createTemplate',
      summary: 'Keeps a template',
      description:
        'What a send with it would be refused for, and braces that look like a slip, are named in `warnings`.',
      body: templateForm,
      example: {
        name: EXAMPLE.name,
        type: EXAMPLE.type,
        subject: EXAMPLE.subject,
        html: EXAMPLE.html,
      },
      answers: { 201: { description: 'Made.', data: one, example: { template: EXAMPLE } } },
      refusals: ['LIMIT_REACHED'],
      handle: async ({ caller, body, warnings }) => {
        const { type = null, subject = null, text = null } = body;
        const html = body.html ?? '';
        const empty = contentFault({ html, text });
        if (empty !== null) return empty;
        const made = await templates.create(caller.accountId, {
          name: body.name,
          html,
          type,
          subject,
          text,
        });
        return isRefusal(made) ? made : answer(201, made, warnings);
      },
    }),
  ];
}

function oneTemplate(templates: Templates): Route[] {
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/templates/{templateId}',
      operationId: 'getTemplate',
      summary: 'One template',
      params,
      answers: { 200: { description: 'The template.', data: one, example: { template: EXAMPLE } } },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const found = templates.get(caller.accountId, params.templateId);
        return isRefusal(found) ? found : { status: 200, data: { template: shownTemplate(found) } };
      },
    }),
    route({
      ...COMMON,
      method: 'PUT',
      path: '/web-setup/templates/{templateId}',
      operationId: 'updateTemplate',
      summary: 'Changes a template',
      description:
        'Fields that are given replace what was there, others stay, `null` takes a value away. Mail that was accepted before stays as it was.',
      params,
      body: z.object({ name: name.optional(), ...fields, html }),
      example: { subject: 'Your order {{orderNumber}} is on its way' },
      answers: {
        200: { description: 'The template as it is now.', data: one, example: { template: EXAMPLE } },
      },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: async ({ caller, params, body, warnings }) => {
        const changes = withoutUndefined({ ...body, html: body.html === null ? '' : body.html });
        const changed = await templates.update(caller.accountId, params.templateId, changes);
        return isRefusal(changed) ? changed : answer(200, changed, warnings);
      },
    }),
    route({
      ...COMMON,
      method: 'DELETE',
      path: '/web-setup/templates/{templateId}',
      operationId: 'deleteTemplate',
      summary: 'Deletes a template',
      description: 'Mail that was accepted with it is sent all the same.',
      params,
      answers: {
        200: {
          description: 'Deleted.',
          data: z.object({ message: z.string(), templateId: z.string() }),
          example: { message: 'The template has been deleted.', templateId: EXAMPLE.templateId },
        },
      },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: async ({ caller, params: { templateId } }) => {
        const removed = await templates.remove(caller.accountId, templateId);
        return isRefusal(removed)
          ? removed
          : { status: 200, data: { message: 'The template has been deleted.', templateId } };
      },
    }),
  ];
}

function answer(status: number, row: TemplateRow, warnings: readonly string[]): Answer {
  const data = { template: shownTemplate(row) };
  return { status, raw: successBody(data, [...warnings, ...templateWarnings(row)]) };
}

const EXAMPLE: z.output<typeof template> = {
  templateId: 'template_1769860800000_3h8k2m5x9q1z',
  name: 'Order confirmation',
  type: 'transactional',
  subject: 'Your order {{orderNumber}}',
  html: '<p>Thank you, {{name}}.</p><p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
  text: null,
  createdAt: '2026-01-31T12:00:00.000Z',
  updatedAt: '2026-01-31T12:00:00.000Z',
};
