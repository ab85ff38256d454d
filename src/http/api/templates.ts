import * as z from 'zod';
import { isRefusal } from '../../core/refusal.ts';
import type { TemplateRow } from '../../store/templates.ts';
import {
  presentTemplate,
  subjectTemplateFault,
  type Templates,
  templateWarnings,
} from '../../templates/templates.ts';
import { successBody } from '../responses.ts';
import { type ApiResponse, type Route, type RouteDescription, route } from '../route.ts';
import { definedFields, line, lines, resourceName } from './fields.ts';
import { nameSearch, pageEnd, pageEndFields, pagingWide, readPageKey } from './paging.ts';
import { templateVersionRoutes } from './template-versions.ts';

/** `/web-setup/templates`: stored content that a send refers to by id. */
export function templateRoutes({ templates }: { templates: Templates }): Route[] {
  return [...collectionRoutes(templates), ...memberRoutes(templates), ...templateVersionRoutes(templates)];
}

const COMMON = { tag: 'Templates', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ templateId: z.string() });

const MAX_VARIABLES = 100;
const variableName = line(100);
const variable = z
  .union([
    variableName,
    z.object({ name: variableName, type: line(50).optional(), required: z.boolean().optional() }),
  ])
  .meta({ id: 'TemplateVariable', description: 'A name, or a name with its type.' });

const fields = {
  type: z
    .enum(['transactional', 'marketing'])
    .nullable()
    .meta({
      id: 'TemplateStream',
      description: 'The stream that may use it; sends of the other one are refused. `null`: both.',
    })
    .optional(),
  subject: line(998)
    .superRefine((subject, context) => {
      const message = subjectTemplateFault(subject);
      if (message !== null) context.addIssue({ code: 'custom', message });
    })
    .nullable()
    .meta({
      id: 'TemplateSubject',
      description: 'May contain `{{name}}`; `null`: every send sets its own.',
    })
    .optional(),
  text: lines()
    .nullable()
    .meta({ id: 'TemplateText', description: 'Plain text version; derived from the html if absent.' })
    .optional(),
  variables: z
    .array(variable)
    .max(MAX_VARIABLES)
    .nullable()
    .meta({
      id: 'TemplateVariables',
      description:
        'The variables of the template as its author declares them. Stored for clients: a send reads the variables of the content.',
    })
    .optional(),
};
const name = resourceName;
const html = lines()
  .min(1)
  .nullable()
  .meta({
    id: 'TemplateHtml',
    description:
      'May contain `{{name}}`, and must contain the compliance variables to be sent. Absent or `null` with a `text`: the mail is text only.',
  })
  .optional();

/** The body that creates a template. */
export const templateInput = z.object({ name, ...fields, html }).meta({ id: 'TemplateInput' });

export const template = z
  .object({
    templateId: z.string(),
    name: z.string(),
    type: z.enum(['transactional', 'marketing']).optional().describe('Absent: for both streams.'),
    subject: z.string().optional(),
    html: z.string().describe('Empty if the mail is text only.'),
    text: z.string().optional(),
    variables: z.array(variable).describe('As they were given.'),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'Template' });
const result = z.object({ template }).meta({ id: 'TemplateResult' });

function collectionRoutes(templates: Templates): Route[] {
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/templates',
      operationId: 'listTemplates',
      summary: 'List templates, newest first',
      description: 'A page has fewer rows than `limit` if the templates are large.',
      query: z.object({ search: nameSearch, ...pagingWide }),
      responses: {
        200: {
          description: 'A page of templates.',
          data: z.object({ templates: z.array(template), ...pageEndFields }),
          example: { templates: [EXAMPLE], count: 1 },
        },
      },
      refusals: [],
      narrowBy: ['limit'],
      handle: async ({ caller, query }) => {
        const beforeSeq = readPageKey('templates', query.lastKey);
        if (isRefusal(beforeSeq)) return beforeSeq;
        const { search, limit } = query;
        const page = await templates.list({ accountId: caller.accountId, beforeSeq, limit, search });
        return {
          status: 200,
          data: { templates: page.rows.map(presentTemplate), ...pageEnd('templates', page) },
        };
      },
    }),
    route({
      ...COMMON,
      method: 'POST',
      path: '/web-setup/templates',
      operationId: 'createTemplate',
      summary: 'Create a template',
      description:
        '`warnings` names the reasons for which a send with the template would be refused, and braces that look like mistakes.',
      body: templateInput,
      example: {
        name: EXAMPLE.name,
        type: EXAMPLE.type,
        subject: EXAMPLE.subject,
        html: EXAMPLE.html,
        variables: EXAMPLE.variables,
      },
      responses: {
        201: { description: 'The created template.', data: result, example: { template: EXAMPLE } },
      },
      refusals: ['LIMIT_REACHED'],
      handle: async ({ caller, body, warnings }) => {
        const { type = null, subject = null, text = null, variables } = body;
        const created = await templates.create(caller.accountId, {
          name: body.name,
          html: body.html ?? '',
          type,
          subject,
          text,
          variables: variables ?? [],
        });
        return isRefusal(created) ? created : response(201, created, warnings);
      },
    }),
  ];
}

function memberRoutes(templates: Templates): Route[] {
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/templates/{templateId}',
      operationId: 'getTemplate',
      summary: 'Get a template',
      params,
      responses: { 200: { description: 'The template.', data: result, example: { template: EXAMPLE } } },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const found = templates.get(caller.accountId, params.templateId);
        return isRefusal(found) ? found : { status: 200, data: { template: presentTemplate(found) } };
      },
    }),
    route({
      ...COMMON,
      method: 'PUT',
      path: '/web-setup/templates/{templateId}',
      operationId: 'updateTemplate',
      summary: 'Update a template',
      description:
        'Replaces the fields that are given; `null` clears a field. Mail that is already accepted does not change.',
      params,
      body: z.object({ name: name.optional(), ...fields, html }).meta({ id: 'TemplatePatch' }),
      example: { subject: 'Your order {{orderNumber}} is on its way' },
      responses: {
        200: { description: 'The updated template.', data: result, example: { template: EXAMPLE } },
      },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: async ({ caller, params, body, warnings }) => {
        const changes = definedFields({
          ...body,
          html: body.html === null ? '' : body.html,
          variables: body.variables === null ? [] : body.variables,
        });
        const updated = await templates.update(caller.accountId, params.templateId, changes);
        return isRefusal(updated) ? updated : response(200, updated, warnings);
      },
    }),
    route({
      ...COMMON,
      method: 'DELETE',
      path: '/web-setup/templates/{templateId}',
      operationId: 'deleteTemplate',
      summary: 'Delete a template',
      description: 'Mail that is already accepted is still sent.',
      params,
      responses: {
        200: {
          description: 'The template was deleted.',
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

function response(status: number, row: TemplateRow, warnings: readonly string[]): ApiResponse {
  const data = { template: presentTemplate(row) };
  return { status, raw: successBody(data, [...warnings, ...templateWarnings(row)]) };
}

const EXAMPLE: z.output<typeof template> = {
  templateId: 'template_1769860800000_3h8k2m5x9q1z',
  name: 'Order confirmation',
  type: 'transactional',
  subject: 'Your order {{orderNumber}}',
  html: '<p>Thank you, {{name}}.</p><p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
  variables: [{ name: 'orderNumber', type: 'string', required: true }, 'name'],
  createdAt: '2026-01-31T12:00:00.000Z',
  updatedAt: '2026-01-31T12:00:00.000Z',
};
