import { Command } from 'commander';
import { iso } from '../core/clock.ts';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import { addressKey } from '../mail/identifier.ts';
import { linkAddress } from '../people/links.ts';
import { createPeople, type Invited, type People } from '../people/people.ts';
import type { ConsolePerson } from '../people/person.ts';
import type { CliContext } from './context.ts';

/** `postrider operator create|list|link|delete`. */
export function operatorCommand(context: CliContext): Command {
  const command = new Command('operator').description('Manage the operators of the web console').addHelpText(
    'after',
    `
A link signs in once, within 15 minutes. Operators create passkeys or a password in the console.

Examples:
  postrider operator create --email ops@example.com
  postrider operator link ops@example.com`,
  );
  command
    .command('create')
    .description('Create an operator; prints a link for the first sign-in')
    .requiredOption('--email <address>', 'mail address of the operator')
    .option('--name <name>', 'name shown in lists', '')
    .option('--json', 'print JSON')
    .action((options: CreateOptions) => issue(context, options, (people) => people.createOperator(options)));
  command
    .command('list')
    .description('List operators, oldest first')
    .option('--json', 'print JSON')
    .action((options: JsonOption) => list(context, options));
  command
    .command('link <email>')
    .description('Print a new sign-in link for an operator or a member of an account')
    .option('--recover', 'also remove passkeys, password and sessions')
    .option('--json', 'print JSON')
    .action((email: string, options: JsonOption & { recover?: boolean }) =>
      withPerson(context, email, (person) =>
        issue(context, options, (people) =>
          people.issueLink(person.id, options.recover === true ? 'recovery' : 'sign-in'),
        ),
      ),
    );
  command
    .command('delete <email>')
    .description('Delete an operator with sessions and passkeys')
    .option('--yes', 'do not ask')
    .option('--json', 'print JSON')
    .action((email: string, options: JsonOption & { yes?: boolean }) =>
      withPerson(context, email, (person) => remove(context, person, options)),
    );
  return command;
}

interface JsonOption {
  json?: boolean;
}

interface CreateOptions extends JsonOption {
  email: string;
  name: string;
}

/** Prints the link that `create` returns. */
async function issue(
  context: CliContext,
  { json }: JsonOption,
  create: (people: People) => Promise<Invited | Refusal>,
): Promise<void> {
  const deps = await context.open();
  const { listen, url } = deps.config.console;
  const created = await create(createPeople(deps));
  if (isRefusal(created)) return context.refused(created);
  const address = linkAddress(url, created.link);
  const expiresAt = iso(created.link.expiresAt);
  if (json === true) context.printJson({ ...record(created.person), link: address, expiresAt });
  else context.print(address);
  context.note(`The link signs in ${created.person.email} once, until ${expiresAt}`);
  if (listen === 'off') context.note('warning: the console is off: set console.listen in the configuration');
}

async function list(context: CliContext, { json }: JsonOption): Promise<void> {
  const operators = createPeople(await context.open())
    .list()
    .filter(({ operator }) => operator);
  if (json === true) context.printJson(operators.map(record));
  else {
    const rows = operators.map((person) => ({
      email: person.email,
      name: person.name,
      status: person.status,
      passkeys: person.passkeys,
      password: person.hasPassword ? 'yes' : 'no',
      'last sign-in': person.signedInAt === null ? '' : iso(person.signedInAt),
    }));
    context.printRows(rows, {
      json: false,
      empty: 'There are no operators; create one with: operator create --email <address>',
    });
  }
}

async function withPerson(
  context: CliContext,
  email: string,
  action: (person: ConsolePerson) => Promise<void>,
): Promise<void> {
  const { tables, ...deps } = await context.open();
  const row = tables.people.byEmail(addressKey(email));
  const person = row === null ? null : createPeople({ tables, ...deps }).get(row.person_id);
  if (person === null) context.fail(`There is no person with the address ${email}`);
  else await action(person);
}

async function remove(
  context: CliContext,
  person: ConsolePerson,
  { yes, json }: JsonOption & { yes?: boolean },
): Promise<void> {
  if (yes !== true && !(await context.confirm(`Delete ${person.email}?`))) return;
  const refusal = await createPeople(await context.open()).remove(person.id);
  if (refusal !== null) context.refused(refusal);
  else if (json === true) context.printJson(record(person));
  else context.print(`${person.email} is deleted`);
}

function record({ createdAt, signedInAt, ...person }: ConsolePerson): object {
  return {
    ...person,
    createdAt: iso(createdAt),
    signedInAt: signedInAt === null ? null : iso(signedInAt),
  };
}
