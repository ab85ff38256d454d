import type { Command } from 'commander';
import { iso } from '../core/clock.ts';
import type { Refusal } from '../core/refusal.ts';
import { addressKey } from '../mail/identifier.ts';
import { linkAddress } from '../people/links.ts';
import { createPeople, type Invited } from '../people/people.ts';
import type { ConsolePerson } from '../people/person.ts';
import { asJson, createCommand, createGroup, option } from './command.ts';
import type { CliContext } from './context.ts';

/** `postrider operator create|list|link|delete`. */
export function operatorCommand(context: CliContext): Command {
  return createGroup('operator', 'Manage the operators of the web console', {
    help: `
A link signs in once, within 15 minutes. Operators create passkeys or a password in the console.

Examples:
  postrider operator create --email ops@example.com
  postrider operator link ops@example.com`,
    commands: [
      createCommand(context, {
        usage: 'create',
        description: 'Create an operator; prints a link for the first sign-in',
        options: [
          option('--email <address>', 'mail address of the operator', { required: true }),
          option('--name <name>', 'name shown in lists', { default: '' }),
          asJson,
        ],
        run: async (options) => {
          const { people } = await openPeople(context);
          printLink(context, await people.createOperator(options));
        },
      }),
      createCommand(context, {
        usage: 'list',
        description: 'List operators, oldest first',
        options: [asJson],
        run: async () => {
          const { people } = await openPeople(context);
          const operators = people.list().filter(({ operator }) => operator);
          context.printRows(
            operators,
            'There are no operators; create one with: operator create --email <address>',
            ({ email, name, status, passkeys, hasPassword, signedInAt }) => ({
              email,
              name,
              status,
              passkeys,
              password: hasPassword,
              'last sign-in': signedInAt,
            }),
          );
        },
      }),
      createCommand(context, {
        usage: 'link <email>',
        description: 'Print a new sign-in link for an operator or a member of an account',
        options: [option('--recover', 'also remove passkeys, password and sessions'), asJson],
        run: async (email, { recover }) => {
          const { people, find } = await openPeople(context);
          const kind = recover === true ? 'recovery' : 'sign-in';
          printLink(context, await people.issueLink(find(email).id, kind));
        },
      }),
      createCommand(context, {
        usage: 'delete <email>',
        description: 'Delete an operator with sessions and passkeys',
        options: [option('--yes', 'do not ask'), asJson],
        run: async (email, { yes }) => {
          const { people, find } = await openPeople(context);
          const person = find(email);
          if (yes !== true && !(await context.confirm(`Delete ${person.email}?`))) return;
          context.accepted(await people.remove(person.id));
          context.show(person, () => `${person.email} is deleted`);
        },
      }),
    ],
  });
}

async function openPeople(context: CliContext) {
  const deps = await context.open();
  const people = createPeople(deps);
  return {
    people,
    find: (email: string): ConsolePerson => {
      const row = deps.tables.people.byEmail(addressKey(email));
      const person = row === null ? null : people.get(row.person_id);
      return person ?? context.fail(`There is no person with the address ${email}`);
    },
  };
}

function printLink(context: CliContext, invited: Invited | Refusal): void {
  const { person, link } = context.accepted(invited);
  const { listen, url } = context.config().console;
  const address = linkAddress(url, link);
  const expiresAt = iso(link.expiresAt);
  context.show({ ...person, link: address, expiresAt }, () => address);
  context.note(`The link signs in ${person.email} once, until ${expiresAt}`);
  if (listen === 'off') context.note('warning: the console is off: set console.listen in the configuration');
}
