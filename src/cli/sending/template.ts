import { Command, Option } from 'commander';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { definedFields } from '../../http/api/fields.ts';
import { templateInput } from '../../http/api/templates.ts';
import { parseInput } from '../../http/validation/parse.ts';
import type { TemplateRow } from '../../store/templates.ts';
import {
  contentRefusal,
  createTemplates,
  presentTemplate,
  type Templates,
  templateWarnings,
} from '../../templates/templates.ts';
import type { CliContext } from '../context.ts';
import { readTextFile } from '../input-files.ts';
import { noteMore, ROWS, rowLimit } from '../output/row-limit.ts';

/** `postrider template list|show|create|update|delete`. */
export function templateCommand(context: CliContext): Command {
  const command = new Command('template').description('Manage templates').addHelpText(
    'after',
    `
Examples:
  postrider template create --account acct_8f3k2m9x0q1z --name Order --subject "Your order {{number}}" --html order.html
  postrider template update template_1769860800000_4k2m9x7q1zab --account acct_8f3k2m9x0q1z --html order.html`,
  );
  const add = (usage: string, description: string) =>
    command
      .command(usage)
      .description(description)
      .requiredOption('--account <id>', 'the account')
      .option('--json', 'print JSON');
  const withContent = (one: Command) =>
    one
      .option('--name <name>', 'name of the template')
      .option('--subject <text>', 'may contain {{name}}')
      .option('--html <file>', 'file with the HTML')
      .option('--text <file>', 'file with the plain text (default: derived from the HTML)')
      .addOption(
        new Option('--type <type>', 'stream of the template (default: both)').choices([
          'transactional',
          'marketing',
        ]),
      );

  add('list', 'List the templates of an account, newest first')
    .option('--limit <n>', 'maximum number of rows', rowLimit, ROWS)
    .action((options: ListOptions) => list(context, options));
  add('show <id>', 'Show a template with its content').action((id: string, options: Options) =>
    one(context, options, (templates) => templates.get(options.account, id)),
  );
  withContent(add('create', 'Create a template; --name and --html or --text are required')).action(
    (options: ContentOptions) => create(context, options),
  );
  withContent(add('update <id>', 'Update the given fields of a template')).action(
    (id: string, options: ContentOptions) => update(context, id, options),
  );
  add('delete <id>', 'Delete a template').action((id: string, options: Options) =>
    one(context, options, (templates) => templates.remove(options.account, id)),
  );
  return command;
}

interface Options {
  account: string;
  json?: boolean;
}

interface ListOptions extends Options {
  limit: number;
}

interface ContentOptions extends Options {
  name?: string;
  subject?: string;
  html?: string;
  text?: string;
  type?: 'transactional' | 'marketing';
}

async function list(context: CliContext, { account, limit, json }: ListOptions): Promise<void> {
  const templates = await templatesOf(context, account);
  if (templates === null) return;
  const page = await templates.list({ accountId: account, beforeSeq: null, limit });
  const rows = page.rows.map(presentTemplate);
  if (page.more) noteMore(context, limit);
  if (json === true) return context.printJson(rows);
  const columns = rows.map(({ templateId, name, type, subject, updatedAt }) => ({
    template: templateId,
    name,
    type: type ?? 'both',
    subject,
    updatedAt,
  }));
  context.printRows(columns, { json: false, empty: 'There are no templates in this account' });
}

async function create(context: CliContext, options: ContentOptions): Promise<void> {
  if (options.name === undefined || (options.html ?? options.text) === undefined)
    return context.usage('--name and --html or --text are required');
  const input = parseInput(templateInput, contentOf(options), 'template');
  if (isRefusal(input)) return context.usage(input.message);
  const { type = null, subject = null, text = null, name } = input;
  const html = input.html ?? '';
  const empty = contentRefusal({ html, text });
  if (empty !== null) return context.usage(empty.message);
  await one(context, options, (templates) =>
    templates.create(options.account, { type, subject, text, name, html, variables: [] }),
  );
}

async function update(context: CliContext, id: string, options: ContentOptions): Promise<void> {
  const content = contentOf(options);
  if (Object.keys(content).length === 0)
    return context.usage('Nothing to change: specify at least one option');
  const input = parseInput(templateInput.partial(), content, 'template');
  if (isRefusal(input)) return context.usage(input.message);
  await one(context, options, (templates) =>
    templates.update(
      options.account,
      id,
      definedFields({ ...input, html: input.html ?? undefined, variables: undefined }),
    ),
  );
}

/** The fields given as options, with the content of the files. */
function contentOf({ name, subject, html, text, type }: ContentOptions): Record<string, unknown> {
  return definedFields({
    name,
    subject,
    type,
    html: html === undefined ? undefined : readTextFile('--html', html),
    text: text === undefined ? undefined : readTextFile('--text', text),
  });
}

/** Null if the account does not exist, which is reported. */
async function templatesOf(context: CliContext, account: string): Promise<Templates | null> {
  const { tables, limits, ...rest } = await context.open();
  if (tables.accounts.get(account) === null) {
    context.fail(`There is no account ${account}`);
    return null;
  }
  return createTemplates({ tables, ...rest, mayAdd: limits.mayAdd.templates });
}

/** Prints the template that `work` returns, with warnings why a send with it would be refused. */
async function one(
  context: CliContext,
  { account, json }: Options,
  work: (templates: Templates) => Promise<TemplateRow | Refusal> | TemplateRow | Refusal,
): Promise<void> {
  const templates = await templatesOf(context, account);
  if (templates === null) return;
  const template = await work(templates);
  if (isRefusal(template)) return context.fail(template.message);
  context.printRecord({ ...presentTemplate(template) }, { json: json === true });
  for (const warning of templateWarnings(template)) context.note(`warning: ${warning}`);
}
