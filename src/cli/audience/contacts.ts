import { statfs } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Command, Option } from 'commander';
import { presentConsent, presentContact, presentMembership } from '../../audience/present.ts';
import { readEmail } from '../../audience/profile.ts';
import type { SearchPage, SearchPosition } from '../../audience/search.ts';
import type { Audience } from '../../audience/service.ts';
import { isRefusal } from '../../core/refusal.ts';
import { emailIdentifier, IDENTIFIER, parsePhone, phoneIdentifier } from '../../mail/identifier.ts';
import { GLOBAL_STATUSES, type GlobalStatus, type KnownContact } from '../../store/contacts/contacts.ts';
import { tryLockDaemon } from '../../store/database/database.ts';
import type { CliContext } from '../context.ts';
import { noteMore, ROWS, rowLimit } from '../output/row-limit.ts';
import { fieldLines, fieldText } from '../output/table.ts';
import { contactsImportCommand } from './contacts-import.ts';
import { withAudience } from './with-audience.ts';

/** `postrider contacts import|list|show|erase|compact`. */
export function contactsCommand(context: CliContext): Command {
  const command = new Command('contacts').description('Manage contacts').addHelpText(
    'after',
    `
<person> is an email address, a phone number (+442079460000) or an identifier (email_<md5>, phone_<md5>).

Examples:
  postrider contacts import people.csv --account acct_8f3k2m9x0q1z
  postrider contacts list --account acct_8f3k2m9x0q1z --search ada
  postrider contacts erase ada@example.net --account acct_8f3k2m9x0q1z`,
  );
  command.addCommand(contactsImportCommand(context));
  command
    .command('list')
    .description('List the contacts of an account, newest first')
    .requiredOption('--account <id>', 'the account')
    .option('--search <text>', 'only with this text in address, name, phone number or identifier')
    .addOption(new Option('--status <status>', 'only with this status').choices(GLOBAL_STATUSES))
    .option('--limit <n>', 'maximum number of rows', rowLimit, ROWS)
    .option('--json', 'print JSON')
    .action((options: ListOptions) => list(context, options));
  command
    .command('show <person>')
    .description('Show a contact: profile, memberships, consent history')
    .requiredOption('--account <id>', 'the account')
    .option('--json', 'print JSON')
    .action((person: string, options: PersonOptions) => show(context, person, options));
  command
    .command('erase <person>')
    .description(
      'Erase a person permanently, contact or not: profile, memberships, and all traces in messages and events',
    )
    .requiredOption('--account <id>', 'the account')
    .option('--json', 'print JSON')
    .action((person: string, options: PersonOptions) => erase(context, person, options));
  command
    .command('compact')
    .description('Rewrite the database file without free space')
    .addHelpText('after', '\nThe daemon must be stopped, and the disk needs space for two more copies.')
    .action(() => compact(context));
  return command;
}

interface PersonOptions {
  account: string;
  json?: boolean;
}

interface ListOptions extends PersonOptions {
  search?: string;
  status?: GlobalStatus;
  limit: number;
}

async function list(context: CliContext, options: ListOptions): Promise<void> {
  await withAudience(context, options.account, async ({ contacts }) => {
    const { account: accountId, search: text, status, limit, json } = options;
    const filter = { accountId, limit, ...(status === undefined ? {} : { status }) };
    const { rows, more } =
      text === undefined
        ? await contacts.list({ ...filter, beforeSeq: null })
        : await search(contacts, { ...filter, text });
    const shown = rows.map(presentContact);
    if (more) noteMore(context, limit);
    if (json === true) return context.printJson(shown);
    const columns = shown.map(({ contactIdentifier, email, phone, firstName, lastName, globalStatus }) => ({
      contactIdentifier,
      email,
      phone,
      firstName,
      lastName,
      globalStatus,
    }));
    context.printRows(columns, { json: false, empty: 'No contact matches' });
  });
}

/** Reads as many pages as needed: pages of a search may be short. */
async function search(
  contacts: Audience['contacts'],
  filter: { accountId: string; text: string; limit: number; status?: GlobalStatus },
): Promise<{ rows: KnownContact[]; more: boolean }> {
  const rows: KnownContact[] = [];
  let after: SearchPosition | null = null;
  do {
    const page: SearchPage = await contacts.search({ ...filter, limit: filter.limit - rows.length, after });
    rows.push(...page.rows.map(({ contact }) => contact));
    after = page.next;
  } while (after !== null && rows.length < filter.limit);
  return { rows, more: after !== null };
}

async function show(context: CliContext, person: string, { account, json }: PersonOptions): Promise<void> {
  const identifier = identifierOf(person);
  if (identifier === null) return context.usage(`${person} is not an address, phone number or identifier`);
  await withAudience(context, account, async ({ contacts }) => {
    const contact = contacts.get(account, identifier);
    if (isRefusal(contact)) return context.fail(contact.message);
    const shown = presentContact(contact);
    const memberships = (await contacts.memberships(contact)).map(presentMembership);
    const consents = contacts.history(contact, null, MAX_CONSENTS).map(presentConsent);
    if (json === true) return context.printJson({ ...shown, memberships, consents });
    context.print(
      [
        ...fieldLines(shown),
        '',
        'member of:',
        ...memberships.map(
          ({ subscriptionGroupId, isActive, joinedAt, source }) =>
            `  ${subscriptionGroupId}  ${isActive ? 'active' : 'left'}  since ${joinedAt}, by ${source}`,
        ),
        '',
        'consent history:',
        ...consents.map(
          ({ timestamp, action, subscriptionGroupId, method, details, recordedBy }) =>
            `  ${timestamp ?? '-'}  ${action}  ${[method, subscriptionGroupId, details, `by ${recordedBy}`]
              .filter((part) => part !== undefined)
              .map(fieldText)
              .join(', ')}`,
        ),
      ].join('\n'),
    );
  });
}

/** The newest entries of the consent history that are shown. */
const MAX_CONSENTS = 1000;

async function erase(context: CliContext, person: string, { account, json }: PersonOptions): Promise<void> {
  const identifier = identifierOf(person);
  if (identifier === null) return context.usage(`${person} is not an address, phone number or identifier`);
  const email = readEmail(person);
  await withAudience(context, account, async ({ erasure }) => {
    const erased = await erasure.erasePerson(account, identifier, 'value' in email ? email.value : null);
    if (isRefusal(erased)) return context.fail(erased.message);
    if (json === true) return context.printJson({ contactIdentifier: identifier, complete: erased.complete });
    context.print(
      erased.complete
        ? `${identifier} is erased`
        : `${identifier} is erased, except for a message in delivery, which the daemon clears afterwards`,
    );
  });
}

async function compact(context: CliContext): Promise<void> {
  // Locked before the database is opened: compaction holds the write lock throughout, so the daemon must not run.
  const { dir } = context.config().data;
  // SQLite's temporary copy must be as private as the database. Read when the first database is opened.
  process.env['SQLITE_TMPDIR'] = resolve(dir);
  const lock = tryLockDaemon(dir);
  if (lock === null)
    return context.fail(
      `contacts compact cannot run while a postrider daemon is running on ${dir}: stop the daemon first`,
    );
  try {
    const { tables } = await context.open({ lock });
    const { pageSize, total, free } = tables.freeSpace.pages();
    const needed = 2 * (total - free) * pageSize;
    const { bavail, bsize } = await statfs(dir);
    if (bavail * bsize < needed)
      return context.fail(
        `contacts compact needs ${mebibytes(needed)} MiB of free disk space in ${dir}, which has ${mebibytes(bavail * bsize)} MiB`,
      );
    tables.erasures.rewrite();
    if (!tables.erasures.emptyLog())
      return context.fail(
        'The database has been rewritten, but another process is reading it: run the command again when that process has ended',
      );
  } finally {
    lock.release();
  }
  context.print('The database has been rewritten');
}

function mebibytes(bytes: number): number {
  return Math.ceil(bytes / (1024 * 1024));
}

/** Null if `person` is neither address, phone number nor identifier. */
function identifierOf(person: string): string | null {
  if (IDENTIFIER.test(person.toLowerCase())) return person.toLowerCase();
  const email = readEmail(person);
  if ('value' in email) return emailIdentifier(email.value);
  const phone = parsePhone(person);
  return phone === null ? null : phoneIdentifier(phone);
}
