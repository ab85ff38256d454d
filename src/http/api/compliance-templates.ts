import * as z from 'zod';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { registrableDomain } from '../../domains/names.ts';
import { COMPLIANCE_KINDS } from '../../mail/compliance.ts';
import type { ComplianceTemplateRow } from '../../store/compliance-templates.ts';
import { type ComplianceTemplates, presentComplianceTemplate } from '../../templates/compliance-templates.ts';
import { successBody } from '../responses.ts';
import { type ApiResponse, type Call, type Route, type RouteDescription, route } from '../route.ts';
import { definedFields, lines, resourceName } from './fields.ts';
import { pageEnd, pageEndFields, pagingWide, readPageKey } from './paging.ts';

/* `/web-setup/compliance-templates`: what the three compliance variables insert into the account's mail. */

export interface ComplianceTemplateRouteDeps {
  complianceTemplates: ComplianceTemplates;
  /** Whether the account has registered the domain; the template of another domain is never used. */
  hasDomain(accountId: string, domain: string): boolean;
}

/**
 * Create, read, update and delete, with the scope `setup`. A response warns when the domain of the template is not
 * registered in the account.
 */
export function complianceTemplateRoutes(deps: ComplianceTemplateRouteDeps): Route[] {
  return [...collectionRoutes(deps), ...memberRoutes(deps)];
}

const COMMON = { tag: 'Compliance templates', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ templateId: z.string() });
const CONTENT_DESCRIPTION =
  'May contain `{{unsubscribe_url}}`, `{{report_abuse_url}}`, `{{company_name}}`, `{{company_address}}`, `{{sender_email}}` and `{{recipient_email}}`, also written as `{{unsubscribeUrl}}` and so on. A reader must see or can follow: for `unsubscribe` `{{unsubscribe_url}}`; for `report_abuse` `{{report_abuse_url}}`, `{{sender_email}}` or a `mailto:` link; for `company_address` `{{company_address}}` or a literal address, which then stands in for that of the account.';

const name = resourceName;
const type = z.enum(COMPLIANCE_KINDS).meta({ id: 'ComplianceType' });
const htmlContent = lines(20_000).min(1).meta({ id: 'ComplianceHtml', description: CONTENT_DESCRIPTION });
const domain = z
  .string()
  .max(1000)
  .nullable()
  .meta({
    id: 'ComplianceDomain',
    description: 'The From domain to which it applies; `null`: all domains without a default.',
  })
  .optional();
const isDefault = z
  .boolean()
  .meta({
    id: 'ComplianceDefault',
    description:
      'Only defaults are used, one for each type and domain. Setting it replaces the previous default.',
  })
  .optional();

const template = z
  .object({
    templateId: z.string(),
    name: z.string(),
    type,
    domain: z.string().optional().describe('Absent: for all From domains without a default.'),
    isDefault: z.boolean(),
    isActive: z.literal(true),
    status: z.literal('active'),
    htmlContent: z.string(),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'ComplianceTemplate' });
const result = z.object({ template }).meta({ id: 'ComplianceTemplateResult' });

function collectionRoutes(deps: ComplianceTemplateRouteDeps): Route[] {
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
        domain: z.string().max(1000).optional().describe('Only those of this From domain.'),
        ...pagingWide,
      }),
      responses: {
        200: {
          description: 'A page of compliance templates.',
          data: z.object({ templates: z.array(template), ...pageEndFields }),
          example: { templates: [EXAMPLE], count: 1 },
        },
      },
      refusals: [],
      narrowBy: ['type', 'domain', 'limit'],
      handle: async ({ caller, query }) => {
        const beforeSeq = readPageKey('compliance-templates', query.lastKey);
        if (isRefusal(beforeSeq)) return beforeSeq;
        const domain = normalizedDomain(query.domain);
        if (isRefusal(domain)) return domain;
        const page = await complianceTemplates.list({
          accountId: caller.accountId,
          beforeSeq,
          limit: query.limit,
          ...(query.type === undefined ? {} : { type: query.type }),
          ...(domain === null ? {} : { domain }),
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
        'Without `isDefault`, the template becomes the default if its type and domain have none. A mail uses the default of its From domain, else the default without a domain, else a built-in text.',
      body: z.object({ name, type, htmlContent, domain, isDefault }).meta({ id: 'ComplianceTemplateInput' }),
      example: { name: EXAMPLE.name, type: EXAMPLE.type, htmlContent: EXAMPLE.htmlContent },
      responses: {
        201: { description: 'The created template.', data: result, example: { template: EXAMPLE } },
      },
      refusals: ['LIMIT_REACHED'],
      handle: async (call) => {
        const { caller, body } = call;
        const domain = normalizedDomain(body.domain);
        if (isRefusal(domain)) return domain;
        const created = await complianceTemplates.create(caller.accountId, {
          name: body.name,
          type: body.type,
          htmlContent: body.htmlContent,
          domain,
          ...(body.isDefault === undefined ? {} : { isDefault: body.isDefault }),
        });
        return isRefusal(created) ? created : response(201, created, call, deps);
      },
    }),
  ];
}

function memberRoutes(deps: ComplianceTemplateRouteDeps): Route[] {
  const { complianceTemplates } = deps;
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/compliance-templates/{templateId}',
      operationId: 'getComplianceTemplate',
      summary: 'Get a compliance template',
      params,
      responses: { 200: { description: 'The template.', data: result, example: { template: EXAMPLE } } },
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
        'Replaces the fields that are given. A default that gets another type or domain becomes the default there. Mail that is already accepted does not change.',
      params,
      body: z
        .object({
          name: name.optional(),
          type: type.optional(),
          htmlContent: htmlContent.optional(),
          domain,
          isDefault,
        })
        .meta({ id: 'ComplianceTemplatePatch' }),
      example: { name: 'Footer of the shop', isDefault: true },
      responses: {
        200: { description: 'The updated template.', data: result, example: { template: EXAMPLE } },
      },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: async (call) => {
        const { caller, params, body } = call;
        const domain = body.domain === undefined ? undefined : normalizedDomain(body.domain);
        if (isRefusal(domain)) return domain;
        const changes = definedFields({ ...body, domain });
        const updated = await complianceTemplates.update(caller.accountId, params.templateId, changes);
        return isRefusal(updated) ? updated : response(200, updated, call, deps);
      },
    }),
    route({
      ...COMMON,
      method: 'DELETE',
      path: '/web-setup/compliance-templates/{templateId}',
      operationId: 'deleteComplianceTemplate',
      summary: 'Delete a compliance template',
      description:
        'If it was a default, the default without a domain or the built-in text is used from then on.',
      params,
      responses: {
        200: {
          description: 'The template was deleted.',
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

/** The name in the form of registered domains; null when none is given. */
function normalizedDomain(domain: string | null | undefined): string | null | Refusal {
  return domain === null || domain === undefined ? null : registrableDomain(domain);
}

function response(
  status: number,
  row: ComplianceTemplateRow,
  { warnings }: Pick<Call<unknown, unknown, unknown>, 'warnings'>,
  { hasDomain }: ComplianceTemplateRouteDeps,
): ApiResponse {
  const unused =
    row.domain !== null && !hasDomain(row.account_id, row.domain)
      ? [`${row.domain} is not registered in this account: the template is not used until it is`]
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
  isDefault: true,
  isActive: true,
  status: 'active',
  htmlContent: '<p>Not for you? <a href="{{unsubscribe_url}}">Unsubscribe {{recipient_email}}</a></p>',
  createdAt: '2026-01-31T12:00:00.000Z',
  updatedAt: '2026-01-31T12:00:00.000Z',
};
