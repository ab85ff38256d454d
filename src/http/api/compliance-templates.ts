import { z } from 'zod';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { registrableDomain } from '../../domains/names.ts';
import { COMPLIANCE_KINDS } from '../../mail/compliance.ts';
import type { ComplianceTemplateRow } from '../../store/compliance-templates.ts';
import { type ComplianceTemplates, shownComplianceTemplate } from '../../templates/compliance-templates.ts';
import { successBody } from '../answers.ts';
import { readPageKey } from '../page-key.ts';
import { type Answer, type Call, type Route, type RouteDescription, route } from '../route.ts';
import { pageEnd, pageEndForm, pagingWide } from './paging.ts';
import { line, lines, withoutUndefined } from './text-form.ts';

/** `/web-setup/compliance-templates`: what the three compliance variables insert in an account's mail. */
export interface ComplianceTemplateParts {
  complianceTemplates: ComplianceTemplates;
  /** Whether the account has registered the domain: a typo would be a template that is never used. */
  hasDomain(accountId: string, domain: string): boolean;
}

export function complianceTemplateRoutes(parts: ComplianceTemplateParts): Route[] {
  return [...allTemplates(parts), ...oneTemplate(parts)];
}

const COMMON = { tag: 'Compliance templates', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ templateId: z.string() });
const HOLDS =
  'May hold `{{unsubscribe_url}}`, `{{report_abuse_url}}`, `{{company_name}}`, `{{company_address}}`, `{{sender_email}}`, `{{recipient_email}}`, and must hold the one that its type is for, where a reader can see or follow it.';

const name = line(200);
const type = z.enum(COMPLIANCE_KINDS);
const htmlContent = lines(20_000).min(1).describe(HOLDS);
const domain = z
  .string()
  .max(1000)
  .nullable()
  .optional()
  .describe('The From domain that it is for; `null`: for all that have no default of their own.');
const isDefault = z
  .boolean()
  .optional()
  .describe('Only defaults are used, one for each type and domain: this takes the place of the one before.');

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

function allTemplates(parts: ComplianceTemplateParts): Route[] {
  const { complianceTemplates } = parts;
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/compliance-templates',
      operationId: 'listComplianceTemplates',
      summary: 'Compliance templates, newest first',
      query: z.object({
        type: type.optional(),
        domain: z.string().max(1000).optional().describe('Only those made for this From domain.'),
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
        const name = normalised(query.domain);
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
            templates: page.rows.map(shownComplianceTemplate),
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
      summary: 'Makes a compliance template',
      description:
        'Where `isDefault` is not given, it becomes the default if its type and domain have none yet. What is used in a mail: the default of its From domain, else the default without a domain, else a built-in text.',
      body: z.object({ name, type, htmlContent, domain, isDefault }),
      example: { name: EXAMPLE.name, type: EXAMPLE.type, htmlContent: EXAMPLE.htmlContent },
      answers: { 201: { description: 'Made.', data: one, example: { template: EXAMPLE } } },
      refusals: ['LIMIT_REACHED'],
      handle: async (call) => {
        const { caller, body } = call;
        const wanted = normalised(body.domain);
        if (isRefusal(wanted)) return wanted;
        const made = await complianceTemplates.create(caller.accountId, {
          name: body.name,
          type: body.type,
          htmlContent: body.htmlContent,
          domain: wanted,
          ...(body.isDefault === undefined ? {} : { isDefault: body.isDefault }),
        });
        return isRefusal(made) ? made : answer(201, made, call, parts);
      },
    }),
  ];
}

function oneTemplate(parts: ComplianceTemplateParts): Route[] {
  const { complianceTemplates } = parts;
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/compliance-templates/{templateId}',
      operationId: 'getComplianceTemplate',
      summary: 'One compliance template',
      params,
      answers: { 200: { description: 'The template.', data: one, example: { template: EXAMPLE } } },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const found = complianceTemplates.get(caller.accountId, params.templateId);
        return isRefusal(found) ? found : { status: 200, data: { template: shownComplianceTemplate(found) } };
      },
    }),
    route({
      ...COMMON,
      method: 'PUT',
      path: '/web-setup/compliance-templates/{templateId}',
      operationId: 'updateComplianceTemplate',
      summary: 'Changes a compliance template',
      description:
        'Fields that are given replace what was there, others stay. A default that is given another type or domain becomes the default there. Mail that was accepted before stays as it was.',
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
        200: { description: 'The template as it is now.', data: one, example: { template: EXAMPLE } },
      },
      refusals: ['TEMPLATE_NOT_FOUND'],
      handle: async (call) => {
        const { caller, params, body } = call;
        const wanted = body.domain === undefined ? undefined : normalised(body.domain);
        if (isRefusal(wanted)) return wanted;
        const changes = withoutUndefined({ ...body, domain: wanted });
        const changed = await complianceTemplates.update(caller.accountId, params.templateId, changes);
        return isRefusal(changed) ? changed : answer(200, changed, call, parts);
      },
    }),
    route({
      ...COMMON,
      method: 'DELETE',
      path: '/web-setup/compliance-templates/{templateId}',
      operationId: 'deleteComplianceTemplate',
      summary: 'Deletes a compliance template',
      description:
        'After a default, the account’s default or the built-in text is used; no other takes its place.',
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

/** As domains are kept; null when there is none. */
function normalised(domain: string | null | undefined): string | null | Refusal {
  return domain === null || domain === undefined ? null : registrableDomain(domain);
}

function answer(
  status: number,
  row: ComplianceTemplateRow,
  { warnings }: Pick<Call<unknown, unknown, unknown>, 'warnings'>,
  { hasDomain }: ComplianceTemplateParts,
): Answer {
  const unused =
    row.domain !== null && !hasDomain(row.account_id, row.domain)
      ? [`${row.domain} is not registered in this account: as long as it is not, the template is not used`]
      : [];
  return {
    status,
    raw: successBody({ template: shownComplianceTemplate(row) }, [...warnings, ...unused]),
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
