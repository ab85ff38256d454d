import type { Command } from 'commander';
import type { Refusal } from '../../core/refusal.ts';
import { definedFields } from '../../http/api/fields.ts';
import { templateInput } from '../../http/api/templates.ts';
import { parseInput } from '../../http/validation/parse.ts';
import type { TemplateRow } from '../../store/templates.ts';
import {
  createTemplates,
  presentTemplate,
  type Templates,
  templateWarnings,
} from '../../templates/templates.ts';
import { createTemplateThreads } from '../../templates/thread/threads.ts';
import { asJson, createCommand, createGroup, noteMore, ofAccount, option, rowLimit } from '../command.ts';
import { type CliContext, FAILED, USAGE } from '../context.ts';
import { readJsonFile, readTextFile } from '../input-files.ts';

const contentOptions = [
  ofAccount,
  asJson,
  option('--name <name>', 'name of the template'),
  option('--subject <text>', 'may contain {{name}}'),
  option('--html <file>', 'file with the HTML'),
  option('--design <file>', 'file with the design as JSON, from which the HTML is made'),
  option('--text <file>', 'file with the plain text (default: derived from the HTML)'),
  option('--type <type>', 'stream of the template (default: both)', {
    choices: ['transactional', 'marketing'],
  }),
] as const;

/** `postrider template list|show|create|update|delete`. */
export function templateCommand(context: CliContext): Command {
  return createGroup('template', 'Manage templates', {
    help: `
Examples:
  postrider template create --account acct_8f3k2m9x0q1z --name Order --subject "Your order {{number}}" --html order.html
  postrider template update template_1769860800000_4k2m9x7q1zab --account acct_8f3k2m9x0q1z --html order.html`,
    commands: [
      createCommand(context, {
        usage: 'list',
        description: 'List the templates of an account, newest first',
        options: [ofAccount, asJson, rowLimit],
        run: async ({ account, limit }) => {
          const templates = await openTemplates(context, account);
          const page = await templates.list({ accountId: account, beforeSeq: null, limit });
          if (page.more) noteMore(context, limit);
          context.printRows(
            page.rows.map(presentTemplate),
            'There are no templates in this account',
            ({ templateId, name, type, subject, updatedAt }) => ({
              template: templateId,
              name,
              type: type ?? 'both',
              subject,
              updatedAt,
            }),
          );
        },
      }),
      createCommand(context, {
        usage: 'show <id>',
        description: 'Show a template with its content',
        options: [ofAccount, asJson],
        run: (id, { account }) => print(context, account, async (templates) => templates.get(account, id)),
      }),
      createCommand(context, {
        usage: 'create',
        description: 'Create a template; --name and --html, --design or --text are required',
        options: contentOptions,
        run: async ({ account, ...options }) => {
          if (options.name === undefined || (options.html ?? options.design ?? options.text) === undefined)
            context.usage('--name and --html, --design or --text are required');
          const {
            type = null,
            subject = null,
            text = null,
            design = null,
            name,
            html,
          } = context.accepted(parseInput(templateInput, contentOf(options), 'template'), USAGE);
          const content = { html: html ?? undefined, text, design };
          await print(context, account, (templates) =>
            templates.create(account, { type, subject, name, ...content, variables: [] }),
          );
        },
      }),
      createCommand(context, {
        usage: 'update <id>',
        description: 'Update the given fields of a template',
        options: contentOptions,
        run: async (id, { account, ...options }) => {
          const content = contentOf(options);
          if (Object.keys(content).length === 0)
            context.usage('Nothing to change: specify at least one option');
          const input = context.accepted(parseInput(templateInput.partial(), content, 'template'), USAGE);
          const patch = definedFields({ ...input, html: input.html ?? undefined, variables: undefined });
          await print(context, account, (templates) => templates.update(account, id, patch));
        },
      }),
      createCommand(context, {
        usage: 'delete <id>',
        description: 'Delete a template',
        options: [ofAccount, asJson],
        run: (id, { account }) => print(context, account, (templates) => templates.remove(account, id)),
      }),
    ],
  });
}

/** The fields given as options, with the content of the files. */
function contentOf({
  name,
  subject,
  html,
  design,
  text,
  type,
}: Record<'name' | 'subject' | 'html' | 'design' | 'text' | 'type', string | undefined>) {
  return definedFields({
    name,
    subject,
    type,
    html: html === undefined ? undefined : readTextFile('--html', html),
    design: design === undefined ? undefined : readJsonFile('--design', design),
    text: text === undefined ? undefined : readTextFile('--text', text),
  });
}

async function openTemplates(context: CliContext, account: string): Promise<Templates> {
  const deps = await context.open({ account });
  return createTemplates(deps, deps.limits.mayAdd.templates, createTemplateThreads(deps.log));
}

/** Prints the template that `work` returns, with warnings why a send with it would be refused. */
async function print(
  context: CliContext,
  account: string,
  work: (templates: Templates) => Promise<TemplateRow | Refusal>,
): Promise<void> {
  const template = context.accepted(await work(await openTemplates(context, account)), FAILED);
  context.printRecord(presentTemplate(template));
  for (const warning of templateWarnings(template)) context.note(`warning: ${warning}`);
}
