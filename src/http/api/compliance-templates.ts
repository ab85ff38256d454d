import * as z from 'zod';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { registrableDomain } from '../../domains/names.ts';
import { COMPLIANCE_KINDS } from '../../mail/compliance.ts';
import type { ComplianceTemplateRow } from '../../store/compliance-templates.ts';
import type { Context } from '../../store/context.ts';
import { type ComplianceTemplates, presentComplianceTemplate } from '../../templates/compliance-templates.ts';
import { mapResult, Reply, type Route, routesOf } from '../route.ts';
import { definedFields, lines, resourceName } from './fields.ts';
import { pageOf, pagesBySeq, pagingWide, seqEnd } from './paging.ts';

/* `/web-setup/compliance-templates`: what the three compliance variables insert into the account's mail. */

const route = routesOf({ tag: 'Compliance templates', scope: 'setup', permissions: ['read', 'prepare'] });
const CONTENT_DESCRIPTION =
  'May contain `{{unsubscribe_url}}`, `{{report_abuse_url}}`, `{{preferences_url}}`, `{{view_url}}`, `{{company_name}}`, `{{company_address}}`, `{{sender_email}}` and `{{recipient_email}}`, also written as `{{unsubscribeUrl}}` and so on. A reader must see or can follow: for `unsubscribe` `{{unsubscribe_url}}`; for `report_abuse` `{{report_abuse_url}}`, `{{sender_email}}` or a `mailto:` link; for `company_address` `{{company_address}}` or a literal address, which then stands in for that of the account.';

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
const one = { data: result, example: { template: EXAMPLE } };

/**
 * Create, read, update and delete. A response warns when the domain of the template is not registered in the account: the
 * template is not used.
 */
export function complianceTemplateRoutes(
  { tables }: Pick<Context, 'tables'>,
  { complianceTemplates }: { complianceTemplates: ComplianceTemplates },
): Route[] {
  const present = (row: ComplianceTemplateRow) => ({ template: presentComplianceTemplate(row) });
  function withWarnings(row: ComplianceTemplateRow): Reply {
    const { domain, account_id } = row;
    const isUnused = domain !== null && tables.domains.named(account_id, domain).length === 0;
    const unused = `${domain} is not registered in this account: the template is not used until it is`;
    return new Reply({ data: present(row) }, { warnings: isUnused ? [unused] : [] });
  }

  return [
    route('GET /web-setup/compliance-templates', {
      operationId: 'listComplianceTemplates',
      summary: 'List compliance templates, newest first',
      query: z.object({
        type: type.optional(),
        domain: z.string().max(1000).optional().describe('Only those of this From domain.'),
        ...pagingWide,
      }),
      page: pagesBySeq('compliance-templates'),
      response: pageOf('templates', template, EXAMPLE, { description: 'A page of compliance templates.' }),
      narrowBy: ['type', 'domain', 'limit'],
      handle: async ({ caller, query, after }) => {
        const domain = normalizedDomain(query.domain);
        if (isRefusal(domain)) return domain;
        const page = await complianceTemplates.list({
          accountId: caller.accountId,
          beforeSeq: after,
          limit: query.limit,
          ...(query.type === undefined ? {} : { type: query.type }),
          ...(domain === null ? {} : { domain }),
        });
        return { templates: page.rows.map(presentComplianceTemplate), ...seqEnd(page) };
      },
    }),
    route('POST /web-setup/compliance-templates', {
      operationId: 'createComplianceTemplate',
      summary: 'Create a compliance template',
      description:
        'Without `isDefault`, the template becomes the default if its type and domain have none. A mail uses the default of its From domain, else the default without a domain, else a built-in text.',
      body: z.object({ name, type, htmlContent, domain, isDefault }).meta({ id: 'ComplianceTemplateInput' }),
      example: { name: EXAMPLE.name, type: EXAMPLE.type, htmlContent: EXAMPLE.htmlContent },
      response: { status: 201, description: 'The created template.', ...one },
      refusals: ['LIMIT_REACHED'],
      handle: async ({ caller, body }) => {
        const domain = normalizedDomain(body.domain);
        if (isRefusal(domain)) return domain;
        const created = await complianceTemplates.create(caller.accountId, {
          name: body.name,
          type: body.type,
          htmlContent: body.htmlContent,
          domain,
          ...(body.isDefault === undefined ? {} : { isDefault: body.isDefault }),
        });
        return mapResult(created, withWarnings);
      },
    }),
    route('GET /web-setup/compliance-templates/{templateId}', {
      operationId: 'getComplianceTemplate',
      summary: 'Get a compliance template',
      response: { description: 'The template.', ...one },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: ({ caller, params }) =>
        mapResult(complianceTemplates.get(caller.accountId, params.templateId), present),
    }),
    route('PUT /web-setup/compliance-templates/{templateId}', {
      operationId: 'updateComplianceTemplate',
      summary: 'Update a compliance template',
      description:
        'Replaces the fields that are given. A default that gets another type or domain becomes the default there. Mail that is already accepted does not change.',
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
      response: { description: 'The updated template.', ...one },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: async ({ caller, params, body }) => {
        const domain = body.domain === undefined ? undefined : normalizedDomain(body.domain);
        if (isRefusal(domain)) return domain;
        const changes = definedFields({ ...body, domain });
        const updated = await complianceTemplates.update(caller.accountId, params.templateId, changes);
        return mapResult(updated, withWarnings);
      },
    }),
    route('DELETE /web-setup/compliance-templates/{templateId}', {
      operationId: 'deleteComplianceTemplate',
      summary: 'Delete a compliance template',
      description:
        'If it was a default, the default without a domain or the built-in text is used from then on.',
      response: {
        description: 'The template was deleted.',
        data: z.object({ message: z.string(), templateId: z.string() }),
        example: { message: 'The compliance template has been deleted.', templateId: EXAMPLE.templateId },
      },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: async ({ caller, params: { templateId } }) => {
        const removed = await complianceTemplates.remove(caller.accountId, templateId);
        return isRefusal(removed)
          ? removed
          : { message: 'The compliance template has been deleted.', templateId };
      },
    }),
  ];
}

/** The name in the form of registered domains; null when none is given. */
function normalizedDomain(domain: string | null | undefined): string | null | Refusal {
  return domain === null || domain === undefined ? null : registrableDomain(domain);
}
