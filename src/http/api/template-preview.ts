import * as z from 'zod';
import type { Contacts } from '../../audience/contacts.ts';
import { contactVariables } from '../../campaigns/fields.ts';
import { inSlices } from '../../core/concurrency/slices.ts';
import { invalid, isRefusal, type Refusal } from '../../core/refusal.ts';
import { DESIGN_AND_HTML, designSchema } from '../../mail/blocks/design.ts';
import { renderDesign } from '../../mail/blocks/render.ts';
import { checkContentInSteps } from '../../mail/content-checks.ts';
import { MAX_MJML_SOURCE } from '../../mail/mjml.ts';
import { renderLiquidContent } from '../../sending/render/render-liquid.ts';
import { checkValues, collectFaults } from '../../sending/request.ts';
import type { Context } from '../../store/context.ts';
import type { LinkChecks } from '../../templates/checks/link-checks.ts';
import type { SpamFilters } from '../../templates/checks/spam-filters.ts';
import { compileMjml, readLiquid } from '../../templates/liquid.ts';
import { withPartials } from '../../templates/partials.ts';
import { MAX_PREVIEW, renderPreviewInSteps } from '../../templates/preview.ts';
import { findTemplate, type TemplateContent } from '../../templates/templates.ts';
import type { TemplateThreads } from '../../templates/thread/threads.ts';
import { type Route, routesOf } from '../route.ts';

const route = routesOf({ tag: 'Templates', scope: 'setup', permissions: ['read', 'read'] });

const MAX_BODY_BYTES = 4 * MAX_PREVIEW;

const content = z.string().max(MAX_PREVIEW);

function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

const contentCheck = z
  .object({
    id: z.string(),
    level: z.enum(['ok', 'warn', 'bad']),
    message: z.string().describe('What is wrong and what to do about it, or what is in order.'),
    where: z.array(z.string()).optional().describe('What is meant, such as addresses: at most three.'),
    count: z.int().describe('Faults, or what was checked.'),
    score: z.number().optional().describe('Points of a spam filter.'),
    threshold: z
      .number()
      .optional()
      .describe('Points from which SpamAssassin marks messages as spam, and Rspamd rejects them.'),
    rules: z
      .array(z.object({ name: z.string(), points: z.number(), description: z.string() }))
      .optional()
      .describe('Its rules that apply, at most 30, the most points first.'),
  })
  .meta({ id: 'ContentCheck' });

export const templatePreview = z
  .object({
    subject: z.string(),
    html: z.string(),
    text: z.string().describe('Derived from the html if the content has none.'),
    bytes: z.int().describe('Of the html. Above about 100,000, Gmail hides the end.'),
    missing: z.array(z.string()).describe('Variables without a value; their names are in the content.'),
    required: z
      .array(z.string())
      .describe('Compliance variables that are not shown: a send would be refused.'),
    leftovers: z
      .array(z.string())
      .describe('Text in braces that is not a variable, and the syntax of other template languages.'),
    previewText: z.string().describe('What inboxes show behind the subject.'),
    checks: z
      .array(contentCheck)
      .describe('What probably is wrong, and what is in order, in the order in which it is corrected.'),
  })
  .meta({ id: 'TemplatePreview' });

/** Whether a path of names has a value; null is none. */
function hasValue(values: Readonly<Record<string, unknown>>, path: readonly string[]): boolean {
  let value: unknown = values;
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return false;
    value = Reflect.get(value, name);
  }
  return value !== null && value !== undefined;
}

/** `POST /web-setup/templates/preview`: content as a recipient would see it, without sending it. */
export function templatePreviewRoutes(
  { tables }: Pick<Context, 'tables'>,
  {
    contacts,
    threads,
    linkChecks,
    spamFilters,
  }: {
    contacts: Pick<Contacts, 'get'>;
    threads: TemplateThreads;
    linkChecks: Pick<LinkChecks, 'check'>;
    spamFilters: Pick<SpamFilters, 'check'>;
  },
): Route[] {
  /** The html of MJML in the request; undefined: there is none. */
  async function compiled(accountId: string, mjml: string | null | undefined) {
    return isAbsent(mjml) ? undefined : compileMjml(threads, accountId, mjml);
  }

  /** Renders Liquid: variables without a value are empty. `written`: the source of the html and of its partials. */
  async function rendered(
    accountId: string,
    source: TemplateContent,
    values: Readonly<Record<string, unknown>>,
  ): Promise<{ content: TemplateContent; missing: string[]; written: string } | Refusal> {
    const complete = withPartials(tables, accountId, { ...source, liquid: {} });
    if (isRefusal(complete)) return complete;
    const read = await readLiquid(threads, accountId, complete);
    if (isRefusal(read)) return read;
    const content = await renderLiquidContent(threads, accountId, complete, values, () => true);
    if (isRefusal(content)) return content;
    return {
      content,
      missing: read.names.filter((name) => !hasValue(values, name.split('.'))),
      written: [source.html, ...Object.values(complete.liquid ?? {})].join('\n'),
    };
  }

  return [
    route('POST /web-setup/templates/preview', {
      operationId: 'previewTemplate',
      isRead: true,
      stores: () => false,
      summary: 'Preview a template',
      description:
        'Renders a stored template, or content that is not stored, with values and the footer of the account. Fields of the request replace those of the template. Variables of a contact have the values of a campaign. Links to unsubscribe and to report are examples. `checks` has what probably is wrong with the content. Nothing is stored or sent.',
      limit: MAX_BODY_BYTES,
      body: z
        .object({
          templateId: z.string().max(100).nullish(),
          subject: z.string().max(1000).nullish(),
          html: content.nullish(),
          design: designSchema.nullish().describe('The html is made from it; not together with `html`.'),
          mjml: z.string().max(MAX_MJML_SOURCE).nullish().describe('The html is compiled from it.'),
          syntax: z
            .enum(['simple', 'liquid'])
            .nullish()
            .describe('Default: that of the template, else `simple`.'),
          text: content.nullish().describe('`null`: derived from the html.'),
          from: z.string().max(320).nullish().describe('Address of the sender, in the footer.'),
          to: z.string().max(320).nullish().describe('Address of the recipient. Default: the contact.'),
          contactIdentifier: z.string().max(320).nullish().describe('The contact whose values are inserted.'),
          language: z
            .string()
            .max(35)
            .nullish()
            .describe(
              'Language tag of the recipient, in whose language the footer is. Default: the contact.',
            ),
          templateVariables: z.record(z.string().max(1000), z.unknown()).nullish(),
          checkLinks: z
            .boolean()
            .nullish()
            .describe(
              'Whether links and images are opened, at most 30 of each, which takes up to 20 s. Not opened are addresses with variables.',
            ),
          checkSpam: z
            .boolean()
            .nullish()
            .describe(
              'Whether the spam filters of the settings judge the content, which takes up to 15 s. None: nothing is reported.',
            ),
        })
        .meta({ id: 'TemplatePreviewInput' }),
      example: {
        subject: 'Your order {{orderNumber}}',
        html: '<p>Thank you, {{firstName}}.</p><p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
        templateVariables: { orderNumber: '10042' },
      },
      response: {
        description: 'The rendered content.',
        data: templatePreview,
        example: {
          subject: 'Your order 10042',
          html: '<p>Thank you, {{firstName}}.</p><p>Example Ltd, 1 High Street <a href="https://example.com/unsubscribe">Unsubscribe</a></p>',
          text: 'Thank you, {{firstName}}.\n\nExample Ltd, 1 High Street Unsubscribe: https://example.com/unsubscribe',
          bytes: 129,
          missing: ['firstName'],
          required: [],
          leftovers: [],
          previewText: 'Thank you, {{firstName}}. Example Ltd, 1 High Street Unsubscribe',
          checks: [{ id: 'subject', level: 'ok', message: 'There is a subject.', count: 0 }],
        },
      },
      refusals: ['TEMPLATE_NOT_FOUND', 'CONTACT_NOT_FOUND', 'TEMPLATE_SYNTAX'],
      handle: async ({ caller: { accountId }, body }) => {
        const {
          templateId,
          contactIdentifier,
          subject,
          design,
          text,
          from,
          to,
          language,
          templateVariables,
        } = body;
        if (!isAbsent(design) && !isAbsent(body.html)) return invalid('html', DESIGN_AND_HTML);
        const values = collectFaults((fault) => {
          checkValues(templateVariables ?? {}, fault);
          return templateVariables ?? {};
        });
        if (isRefusal(values)) return values;
        const template = isAbsent(templateId) ? null : findTemplate(tables, accountId, templateId);
        if (template !== null && isRefusal(template)) return template;
        const contact = isAbsent(contactIdentifier) ? null : contacts.get(accountId, contactIdentifier);
        if (contact !== null && isRefusal(contact)) return contact;
        const fromMjml = await compiled(accountId, body.mjml);
        if (isRefusal(fromMjml)) return fromMjml;
        const html = fromMjml ?? (isAbsent(design) ? body.html : renderDesign(design));
        const source = {
          subject: subject ?? template?.subject ?? '',
          html: html ?? template?.html ?? '',
          text: text === undefined ? (template?.text ?? null) : text,
        };
        const known = { ...values, ...(contact === null ? {} : contactVariables(contact)) };
        const isLiquid = (body.syntax ?? template?.syntax) === 'liquid';
        const liquid = isLiquid ? await rendered(accountId, source, known) : null;
        if (isRefusal(liquid)) return liquid;
        const addresses = {
          from: from ?? 'sender@example.com',
          to: to ?? contact?.email ?? 'recipient@example.com',
        };
        const preview = await inSlices(
          renderPreviewInSteps(tables, accountId, {
            ...(liquid?.content ?? source),
            syntax: isLiquid ? 'marks' : undefined,
            ...addresses,
            language: language ?? contact?.language ?? null,
            values: known,
          }),
          accountId,
        );
        const shown = liquid === null ? preview : { ...preview, missing: liquid.missing };
        const checked = await inSlices(checkContentInSteps(shown), accountId);
        const onRequest = await Promise.all([
          body.checkLinks === true
            ? linkChecks.check(accountId, { html: shown.html, source: liquid?.written ?? source.html })
            : [],
          body.checkSpam === true
            ? spamFilters.check(accountId, {
                ...addresses,
                subject: shown.subject,
                html: shown.html,
                text: shown.text,
                kind: template?.type === 'transactional' ? 'transactional' : 'marketing',
              })
            : [],
        ]);
        return { ...shown, ...checked, checks: [...checked.checks, ...onRequest.flat()] };
      },
    }),
  ];
}
