import { z } from 'zod';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { registrableDomain } from '../../domains/names.ts';
import { COMPLIANCE_KINDS } from '../../mail/compliance.ts';
import type { ComplianceTemplateRow } from '../../store/compliance-templates.ts';
import { type ComplianceTemplates, presentComplianceTemplate } from '../../templates/compliance-templates.ts';
import { successBody } from '../answers.ts';
import { readPageKey } from '../page-key.ts';
import { type Answer, type Call, type Route, type RouteDescription, route } from '../route.ts';
import { given } from './given.ts';
import { pageEnd, pageEndForm, pagingWide } from './paging.ts';
import { line, lines } from './text-form.ts';

/** `/web-setup/compliance-templates`: templates of what the three compliance variables insert. */
export interface ComplianceTemplateRouteDeps {
  complianceTemplates: ComplianceTemplates;
  /** Whether the account has registered the domain; the template of any other domain is not used. */
  hasDomain(accountId: string, domain: string): boolean;
}

export function complianceTemplateRoutes(deps: ComplianceTemplateRouteDeps): Route[] {
  return [...allTemplates(deps), ...oneTemplate(deps)];
}

const COMMON = { tag: 'Compliance templates', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ templateId: z.string() });
const VARIABLES =
  'Can contain `{{unsubscribe_url}}`, `{{report_abuse_url}}`, `{{company_name}}`, `{{company_address}}`, `{{sender_email}}`, `{{recipient_email}}`; must contain the one of its type where a reader can see or follow it.';

const name = line(200);
const type = z.enum(COMPLIANCE_KINDS);
const htmlContent = lines(20_000).min(1).describe(VARIABLES);
const domain = z
  .string()
  .max(1000)
  .nullable()
  .optional()
  .describe('The From domain that uses it; `null`: all domains without a default.');
const isDefault = z
  .boolean()
  .optional()
  .describe(
    'Only defaults are used, one for each type and domain: the new default replaces the previous one.',
  );

const template = z.object({
  templateId: z.string(),
  name: z.string(),
  type,
  domain: z.string().nullable(),
  isDefault: z.boolean(),
  htmlContent: z.string(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
const one = z.object({ template });

function allTemplates(deps: ComplianceTemplateRouteDeps): Route[] {
  const { complianceTemplates } = deps;
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/compliance-templates',
      operationId: 'listComplianceTemplates',
      summary: 'List compliance templates, newest first',
      query: z.object({
        type: type.optional(),
        domain: z.string().max(1000).optional().describe('Only templates of this From domain.'),
        ...pagingWide,
      }),
      answers: {
        200: {
          description: 'A page of compliance templates.',
          data: z.object({ templates: z.array(template), ...pageEndForm }),
          example: { templates: [EXAMPLE], count: 1 },
        },
      },
      refusals: [],
      narrowBy: ['type', 'domain', 'limit'],
      handle: async ({ caller, query }) => {
        const beforeSeq = readPageKey('compliance-templates', query.lastKey);
        if (isRefusal(beforeSeq)) return beforeSeq;
        const name = canonicalDomain(query.domain);
        if (isRefusal(name)) return name;
        const page = await complianceTemplates.list({
          accountId: caller.accountId,
          beforeSeq,
          limit: query.limit,
          ...(query.type === undefined ? {} : { type: query.type }),
          ...(name === null ? {} : { domain: name }),
        });
        return {
          status: 200,
          data: {
            templates: page.rows.map(presentComplianceTemplate),
            ...pageEnd('compliance-templates', page),
          },
        };
      },
    }),
    route({
      ...COMMON,
      method: 'POST',
      path: '/web-setup/compliance-templates',
      operationId: 'createComplianceTemplate',
      summary: 'Create a compliance template',
      description:
        'Without `isDefault` it becomes the default if its type and domain have none. A message uses the default of its From domain, else the default without a domain, else the built-in text.',
      body: z.object({ name, type, htmlContent, domain, isDefault }),
      example: { name: EXAMPLE.name, type: EXAMPLE.type, htmlContent: EXAMPLE.htmlContent },
      answers: { 201: { description: 'Created.', data: one, example: { template: EXAMPLE } } },
      refusals: ['LIMIT_REACHED'],
      handle: async (call) => {
        const { caller, body } = call;
        const domain = canonicalDomain(body.domain);
        if (isRefusal(domain)) return domain;
        const created = await complianceTemplates.create(caller.accountId, {
          name: body.name,
          type: body.type,
          htmlContent: body.htmlContent,
          domain: domain,
          ...(body.isDefault === undefined ? {} : { isDefault: body.isDefault }),
        });
        return isRefusal(created) ? created : answer(201, created, call, deps);
      },
    }),
  ];
}

function oneTemplate(deps: ComplianceTemplateRouteDeps): Route[] {
  const { complianceTemplates } = deps;
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/compliance-templates/{templateId}',
      operationId: 'getComplianceTemplate',
      summary: 'Retrieve a compliance template',
      params,
      answers: { 200: { description: 'The template.', data: one, example: { template: EXAMPLE } } },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const found = complianceTemplates.get(caller.accountId, params.templateId);
        return isRefusal(found)
          ? found
          : { status: 200, data: { template: presentComplianceTemplate(found) } };
      },
    }),
    route({
      ...COMMON,
      method: 'PUT',
      path: '/web-setup/compliance-templates/{templateId}',
      operationId: 'updateComplianceTemplate',
      summary: 'Update a compliance template',
      description:
        'Given fields are replaced, others are not changed. A default whose type or domain changes becomes the default there. Messages that were accepted before do not change.',
      params,
      body: z.object({
        name: name.optional(),
        type: type.optional(),
        htmlContent: htmlContent.optional(),
        domain,
        isDefault,
      }),
      example: { name: 'Footer of the shop', isDefault: true },
      answers: {
        200: { description: 'The updated template.', data: one, example: { template: EXAMPLE } },
      },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: async (call) => {
        const { caller, params, body } = call;
        const domain = body.domain === undefined ? undefined : canonicalDomain(body.domain);
        if (isRefusal(domain)) return domain;
        const changes = given({ ...body, domain: domain });
        const changed = await complianceTemplates.update(caller.accountId, params.templateId, changes);
        return isRefusal(changed) ? changed : answer(200, changed, call, deps);
      },
    }),
    route({
      ...COMMON,
      method: 'DELETE',
      path: '/web-setup/compliance-templates/{templateId}',
      operationId: 'deleteComplianceTemplate',
      summary: 'Delete a compliance template',
      description: 'In place of a deleted default, the account’s default or the built-in text is used.',
      params,
      answers: {
        200: {
          description: 'Deleted.',
          data: z.object({ message: z.string(), templateId: z.string() }),
          example: { message: 'The compliance template has been deleted.', templateId: EXAMPLE.templateId },
        },
      },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: async ({ caller, params: { templateId } }) => {
        const removed = await complianceTemplates.remove(caller.accountId, templateId);
        return isRefusal(removed)
          ? removed
          : { status: 200, data: { message: 'The compliance template has been deleted.', templateId } };
      },
    }),
  ];
}

/** The stored form of a domain; null when none is given. */
function canonicalDomain(domain: string | null | undefined): string | null | Refusal {
  return domain === null || domain === undefined ? null : registrableDomain(domain);
}

function answer(
  status: number,
  row: ComplianceTemplateRow,
  { warnings }: Pick<Call<unknown, unknown, unknown>, 'warnings'>,
  { hasDomain }: ComplianceTemplateRouteDeps,
): Answer {
  const unused =
    row.domain !== null && !hasDomain(row.account_id, row.domain)
      ? [`${row.domain} is not registered in this account: until it is, the template is not used`]
      : [];
  return {
    status,
    raw: successBody({ template: presentComplianceTemplate(row) }, [...warnings, ...unused]),
  };
}

const EXAMPLE: z.output<typeof template> = {
  templateId: 'ctemplate_1769860800000_5n2b8v4c7x1z',
  name: 'Footer',
  type: 'unsubscribe',
  domain: null,
  isDefault: true,
  htmlContent: '<p>Not for you? <a href="{{unsubscribe_url}}">Unsubscribe {{recipient_email}}</a></p>',
  createdAt: '2026-01-31T12:00:00.000Z',
  updatedAt: '2026-01-31T12:00:00.000Z',
};
