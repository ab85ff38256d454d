import * as z from 'zod';
import { iso } from '../../core/clock.ts';
import { invalid, isRefusal, type Refusal } from '../../core/refusal.ts';
import { withoutNulls } from '../../core/without-nulls.ts';
import { designSchema } from '../../mail/blocks/design.ts';
import { MAX_MJML_SOURCE } from '../../mail/mjml.ts';
import { MAX_VERSIONS, type TemplateRow, type TemplateVersionHead } from '../../store/templates.ts';
import {
  presentTemplate,
  readDesign,
  type StoredTemplate,
  subjectTemplateFault,
  type Templates,
  templateWarnings,
} from '../../templates/templates.ts';
import { mapResult, Reply, type Route, routesOf } from '../route.ts';
import { definedFields, line, lines, resourceName } from './fields.ts';
import { nameSearch, pageOf, pagesBySeq, pagingWide, seqEnd } from './paging.ts';

const route = routesOf({ tag: 'Templates', scope: 'setup', permissions: ['read', 'prepare'] });

const MAX_VARIABLES = 100;
const variableName = line(100);
const variable = z
  .union([
    variableName,
    z.object({ name: variableName, type: line(50).optional(), required: z.boolean().optional() }),
  ])
  .meta({ id: 'TemplateVariable', description: 'A name, or a name with its type.' });

const templateSyntax = z.enum(['simple', 'liquid']).meta({
  id: 'TemplateSyntax',
  description:
    'Of subject, html and text. `simple`: `{{name}}` and `{{name|default}}`. `liquid`: conditions, loops and filters; escaped in html.',
});

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
  design: designSchema
    .nullable()
    .optional()
    .describe(
      'The mail as blocks, from which the html is made: `html` is then absent or as it was returned. `null`: the html is written by hand.',
    ),
  syntax: templateSyntax.optional(),
  format: z
    .enum(['html', 'mjml'])
    .optional()
    .describe('`mjml` requires `mjml`; `html` deletes the MJML of a template and leaves its html.'),
  mjml: lines()
    .min(1)
    .max(MAX_MJML_SOURCE)
    .nullable()
    .optional()
    .describe(
      'A source in MJML, from which the html is compiled: `html` is then absent or as it was returned.',
    ),
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
      'May contain `{{name}}`, and must contain the compliance variables to be sent. Absent or `null` with a `text`: the mail is text only. Other html without a `design` deletes the design of a template.',
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
    design: designSchema.optional().describe('Absent: the html is written by hand.'),
    syntax: templateSyntax,
    format: z.enum(['html', 'mjml']),
    mjml: z.string().optional().describe('What the html was compiled from.'),
    variables: z.array(variable).describe('As they were given.'),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'Template' });
const result = z.object({ template }).meta({ id: 'TemplateResult' });

const templateExample = {
  name: 'Order confirmation',
  type: 'transactional',
  subject: 'Your order {{orderNumber}}',
  html: '<p>Thank you, {{name}}.</p><p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
  variables: [{ name: 'orderNumber', type: 'string', required: true }, 'name'],
} as const;
const EXAMPLE = {
  templateId: 'template_1769860800000_3h8k2m5x9q1z',
  ...templateExample,
  syntax: 'simple',
  format: 'html',
  createdAt: '2026-01-31T12:00:00.000Z',
  updatedAt: '2026-01-31T12:00:00.000Z',
} as const;
const example = { template: EXAMPLE };

export const templateVersionSchema = z
  .object({
    version: z.int().describe('Rises with each change.'),
    name: z.string(),
    subject: z.string().optional(),
    savedAt: z.iso.datetime().describe('When it became the content of the template.'),
  })
  .meta({ id: 'TemplateVersion' });

const VERSION_EXAMPLE: z.output<typeof templateVersionSchema> = {
  version: 3,
  name: 'Order confirmation',
  subject: 'Your order {{orderNumber}}',
  savedAt: '2026-01-31T12:00:00.000Z',
};

/** `/web-setup/templates`: stored content that a send refers to by id, and what it was before its last changes. */
export function templateRoutes({ templates }: { templates: Templates }): Route[] {
  return [
    route('GET /web-setup/templates', {
      operationId: 'listTemplates',
      summary: 'List templates, newest first',
      description: 'A page has fewer rows than `limit` if the templates are large.',
      query: z.object({ search: nameSearch, ...pagingWide }),
      page: pagesBySeq('templates'),
      response: pageOf('templates', template, EXAMPLE),
      narrowBy: ['limit'],
      handle: async ({ caller: { accountId }, query: { search, limit }, after }) => {
        const page = await templates.list({ accountId, beforeSeq: after, limit, search });
        return { templates: page.rows.map(presentTemplate), ...seqEnd(page) };
      },
    }),
    route('POST /web-setup/templates', {
      operationId: 'createTemplate',
      summary: 'Create a template',
      description:
        '`warnings` names the reasons for which a send with the template would be refused, and braces that look like mistakes.',
      body: templateInput,
      example: templateExample,
      response: { status: 201, description: 'The created template.', data: result, example },
      refusals: ['LIMIT_REACHED', 'TEMPLATE_SYNTAX'],
      handle: async ({ caller, body }) => {
        const fault = formatFault(body);
        if (fault !== null) return fault;
        const { type = null, subject = null, text = null, design = null, html, variables } = body;
        const created = await templates.create(caller.accountId, {
          name: body.name,
          html: html ?? undefined,
          type,
          subject,
          text,
          design,
          syntax: body.syntax,
          mjml: body.mjml,
          variables: variables ?? [],
        });
        return mapResult(created, withWarnings);
      },
    }),
    route('GET /web-setup/templates/{templateId}', {
      operationId: 'getTemplate',
      summary: 'Get a template',
      response: { description: 'The template.', data: result, example },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: ({ caller, params }) => mapResult(templates.get(caller.accountId, params.templateId), present),
    }),
    route('PUT /web-setup/templates/{templateId}', {
      operationId: 'updateTemplate',
      summary: 'Update a template',
      description:
        'Replaces the fields that are given; `null` clears a field. Mail that is already accepted does not change.',
      body: z.object({ name: name.optional(), ...fields, html }).meta({ id: 'TemplatePatch' }),
      example: { subject: 'Your order {{orderNumber}} is on its way' },
      response: { description: 'The updated template.', data: result, example },
      refusals: ['TEMPLATE_NOT_FOUND', 'TEMPLATE_SYNTAX'],
      handle: async ({ caller, params, body: { format, ...body } }) => {
        const fault = formatFault({ format, ...body });
        if (fault !== null) return fault;
        const changes = definedFields({
          ...body,
          mjml: format === 'html' ? null : body.mjml,
          html: body.html === null ? (body.design || body.mjml ? undefined : '') : body.html,
          variables: body.variables === null ? [] : body.variables,
        });
        return mapResult(await templates.update(caller.accountId, params.templateId, changes), withWarnings);
      },
    }),
    route('DELETE /web-setup/templates/{templateId}', {
      operationId: 'deleteTemplate',
      summary: 'Delete a template',
      description: 'Mail that is already accepted is still sent.',
      response: {
        description: 'The template was deleted.',
        data: z.object({ message: z.string(), templateId: z.string() }),
        example: { message: 'The template has been deleted.', templateId: EXAMPLE.templateId },
      },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: async ({ caller, params: { templateId } }) => {
        const removed = await templates.remove(caller.accountId, templateId);
        return isRefusal(removed) ? removed : { message: 'The template has been deleted.', templateId };
      },
    }),
    route('GET /web-setup/templates/{templateId}/versions', {
      operationId: 'listTemplateVersions',
      summary: 'List earlier versions of a template, newest first',
      description: `The last ${MAX_VERSIONS} before the current one. Each change of a field of the template makes one.`,
      response: {
        description: 'The versions.',
        data: z.object({ versions: z.array(templateVersionSchema), count: z.int() }),
        example: { versions: [VERSION_EXAMPLE], count: 1 },
      },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: ({ caller, params: { templateId } }) => {
        const found = templates.versions(caller.accountId, templateId);
        if (isRefusal(found)) return found;
        return { versions: found.map(presentVersion), count: found.length };
      },
    }),
    route('GET /web-setup/templates/{templateId}/versions/{version}', {
      operationId: 'getTemplateVersion',
      summary: 'Get an earlier version of a template',
      description: 'To restore it, update the template with its fields.',
      params: { version: z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER) },
      response: {
        description: 'The version.',
        data: templateVersionSchema
          .extend({
            type: z.enum(['transactional', 'marketing']).optional(),
            html: z.string(),
            text: z.string().optional(),
            design: designSchema.optional(),
            syntax: templateSyntax,
            mjml: z.string().optional(),
          })
          .meta({ id: 'TemplateVersionContent' }),
        example: {
          ...VERSION_EXAMPLE,
          type: 'transactional',
          html: '<p>Thank you, {{name}}.</p>',
          syntax: 'simple',
        },
      },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: ({ caller, params: { templateId, version } }) => {
        const found = templates.version(caller.accountId, templateId, version);
        if (isRefusal(found)) return found;
        const { type, html, text, syntax, mjml } = found;
        return {
          ...presentVersion(found),
          ...withoutNulls({ type, html, text, syntax, mjml, design: readDesign(found.design) }),
        };
      },
    }),
  ];
}

/** Refuses a format that the other fields contradict. */
function formatFault({
  format,
  mjml,
}: {
  format?: 'html' | 'mjml' | undefined;
  mjml?: string | null | undefined;
}): Refusal | null {
  if (format === 'mjml' && (mjml === undefined || mjml === null))
    return invalid('mjml', 'is required with the format mjml');
  return format === 'html' && mjml
    ? invalid('format', 'must be mjml, or absent, with a source in MJML')
    : null;
}

function present(row: TemplateRow) {
  return { template: presentTemplate(row) };
}

function withWarnings(row: TemplateRow & Partial<StoredTemplate>): Reply {
  return new Reply({ data: present(row) }, { warnings: templateWarnings(row) });
}

function presentVersion({ version, name, subject, saved_at }: TemplateVersionHead) {
  return withoutNulls({ version, name, subject, savedAt: iso(saved_at) });
}
