import * as z from 'zod';
import { iso } from '../../core/clock.ts';
import { isRefusal } from '../../core/refusal.ts';
import { withoutNulls } from '../../core/without-nulls.ts';
import { MAX_VERSIONS, type TemplateVersionHead } from '../../store/template-versions.ts';
import type { Templates } from '../../templates/templates.ts';
import { type Route, type RouteDescription, route } from '../route.ts';

const COMMON = {
  method: 'GET',
  tag: 'Templates',
  scope: 'setup',
  refusals: ['TEMPLATE_NOT_FOUND'],
} satisfies Partial<RouteDescription>;

export const templateVersionSchema = z
  .object({
    version: z.int().describe('Rises with each change.'),
    name: z.string(),
    subject: z.string().optional(),
    savedAt: z.iso.datetime().describe('When it became the content of the template.'),
  })
  .meta({ id: 'TemplateVersion' });

const EXAMPLE: z.output<typeof templateVersionSchema> = {
  version: 3,
  name: 'Order confirmation',
  subject: 'Your order {{orderNumber}}',
  savedAt: '2026-01-31T12:00:00.000Z',
};

/** What a template was before its last changes. It is restored with an update. */
export function templateVersionRoutes(templates: Pick<Templates, 'versions' | 'version'>): Route[] {
  return [
    route({
      ...COMMON,
      path: '/web-setup/templates/{templateId}/versions',
      operationId: 'listTemplateVersions',
      summary: 'List earlier versions of a template, newest first',
      description: `The last ${MAX_VERSIONS} before the current one. Each change of a field of the template makes one.`,
      params: z.object({ templateId: z.string() }),
      responses: {
        200: {
          description: 'The versions.',
          data: z.object({ versions: z.array(templateVersionSchema), count: z.int() }),
          example: { versions: [EXAMPLE], count: 1 },
        },
      },
      handle: ({ caller, params: { templateId } }) => {
        const found = templates.versions(caller.accountId, templateId);
        if (isRefusal(found)) return found;
        return { status: 200, data: { versions: found.map(present), count: found.length } };
      },
    }),
    route({
      ...COMMON,
      path: '/web-setup/templates/{templateId}/versions/{version}',
      operationId: 'getTemplateVersion',
      summary: 'Get an earlier version of a template',
      description: 'To restore it, update the template with its fields.',
      params: z.object({
        templateId: z.string(),
        version: z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER),
      }),
      responses: {
        200: {
          description: 'The version.',
          data: templateVersionSchema
            .extend({
              type: z.enum(['transactional', 'marketing']).optional(),
              html: z.string(),
              text: z.string().optional(),
            })
            .meta({ id: 'TemplateVersionContent' }),
          example: { ...EXAMPLE, type: 'transactional', html: '<p>Thank you, {{name}}.</p>' },
        },
      },
      handle: ({ caller, params: { templateId, version } }) => {
        const found = templates.version(caller.accountId, templateId, version);
        if (isRefusal(found)) return found;
        const { type, html, text } = found;
        return { status: 200, data: { ...present(found), ...withoutNulls({ type, html, text }) } };
      },
    }),
  ];
}

function present({ version, name, subject, saved_at }: TemplateVersionHead) {
  return withoutNulls({ version, name, subject, savedAt: iso(saved_at) });
}
