import { statfs } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { consentProof } from '../../audience/consent-proof.ts';
import { findPerson } from '../../audience/people.ts';
import { type PersonalDataPosition, readPersonalData } from '../../audience/personal-data.ts';
import { presentConsent, presentContact, presentMembership } from '../../audience/present.ts';
import { readEmail } from '../../audience/profile.ts';
import type { SearchPage, SearchPosition } from '../../audience/search.ts';
import type { Audience } from '../../audience/service.ts';
import { consentProofPage } from '../../http/api/contacts/consent-proof-page.ts';
import { emailIdentifier, IDENTIFIER, parsePhone, phoneIdentifier } from '../../mail/identifier.ts';
import { GLOBAL_STATUSES, type GlobalStatus, type KnownContact } from '../../store/contacts/contacts.ts';
import { tryLockDaemon } from '../../store/database/database.ts';
import { asJson, createCommand, createGroup, noteMore, ofAccount, option, rowLimit } from '../command.ts';
import { type CliContext, FAILED } from '../context.ts';
import { fieldLines, fieldText } from '../output/table.ts';
import { contactsHygieneCommand } from './contacts-hygiene.ts';
import { contactsImportCommand } from './contacts-import.ts';
import { openAudience } from './open-audience.ts';

/** `postrider contacts import|hygiene|list|show|proof|export|erase|compact`. */
export function contactsCommand(context: CliContext): Command {
  return createGroup('contacts', 'Manage contacts', {
    help: `
<person> is an email address, a phone number (+442079460000) or an identifier (email_<md5>, phone_<md5>).

Examples:
  postrider contacts import people.csv --account acct_8f3k2m9x0q1z
  postrider contacts list --account acct_8f3k2m9x0q1z --search ada
  postrider contacts erase ada@example.net --account acct_8f3k2m9x0q1z`,
    commands: [
      contactsImportCommand(context),
      contactsHygieneCommand(context),
      createCommand(context, {
        usage: 'list',
        description: 'List the contacts of an account, newest first',
        options: [
          ofAccount,
          option('--search <text>', 'only with this text in address, name, phone number or identifier'),
          option('--status <status>', 'only with this status', { choices: GLOBAL_STATUSES }),
          option('--segment <id>', 'only those of this segment, without --search'),
          rowLimit,
          asJson,
        ],
        run: async ({ account: accountId, search: text, status, segment: segmentId, limit }) => {
          if (text !== undefined && segmentId !== undefined)
            context.usage('--search and --segment cannot be combined');
          const { contacts, segments } = await openAudience(context, accountId);
          const filter = { accountId, limit, ...(status === undefined ? {} : { status }) };
          const ofSegment = (id: string) =>
            segments.contacts(accountId, { segmentId: id, status: status ?? null, beforeSeq: null, limit });
          const { rows, more } =
            segmentId !== undefined
              ? context.accepted(await ofSegment(segmentId), FAILED)
              : text === undefined
                ? await contacts.list({ ...filter, beforeSeq: null })
                : await search(contacts, { ...filter, text });
          if (more) noteMore(context, limit);
          context.printRows(rows.map(presentContact), 'No contact matches', [
            'contactIdentifier',
            'email',
            'phone',
            'firstName',
            'lastName',
            'globalStatus',
          ]);
        },
      }),
      createCommand(context, {
        usage: 'show <person>',
        description: 'Show a contact: profile, memberships, consent history',
        options: [ofAccount, asJson],
        run: (person, { account }) => show(context, person, account),
      }),
      createCommand(context, {
        usage: 'proof <person>',
        description: 'Print the proof of consent of a contact as JSON, or as a page to print',
        options: [ofAccount, option('--html', 'a page to print')],
        run: async (person, { account, html }) => {
          const identifier = identifierOf(context, person);
          const { tables, clock } = await context.open({ account });
          const contact = context.accepted(findPerson(tables, account, identifier), FAILED);
          const proof = consentProof(tables, contact, clock.now());
          const of = tables.accounts.get(account);
          context.print(
            html === true
              ? consentProofPage(proof, of?.company_name ?? of?.name ?? account)
              : JSON.stringify(proof, null, 2),
          );
        },
      }),
      createCommand(context, {
        usage: 'export <person>',
        description: 'Print all data about a person as JSON, contact or not',
        options: [ofAccount],
        run: (person, { account }) => exportPerson(context, person, account),
      }),
      createCommand(context, {
        usage: 'erase <person>',
        description:
          'Erase a person permanently, contact or not: profile, memberships, and all traces in messages and events',
        options: [ofAccount, asJson],
        run: async (person, { account }) => {
          const identifier = identifierOf(context, person);
          const email = readEmail(person);
          const { erasure } = await openAudience(context, account);
          const address = 'value' in email ? email.value : null;
          const { complete } = context.accepted(
            await erasure.erasePerson(account, identifier, address),
            FAILED,
          );
          context.show({ contactIdentifier: identifier, complete }, () =>
            complete
              ? `${identifier} is erased`
              : `${identifier} is erased, except for a message in delivery, which the daemon clears afterwards`,
          );
        },
      }),
      createCommand(context, {
        usage: 'compact',
        description: 'Rewrite the database file without free space',
        help: '\nThe daemon must be stopped, and the disk needs space for two more copies.',
        run: () => compact(context),
      }),
    ],
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

async function show(context: CliContext, person: string, account: string): Promise<void> {
  const identifier = identifierOf(context, person);
  const { contacts } = await openAudience(context, account);
  const contact = context.accepted(contacts.get(account, identifier), FAILED);
  const shown = presentContact(contact);
  const memberships = (await contacts.memberships(contact)).map(presentMembership);
  const consents = contacts.history(contact, null, MAX_CONSENTS).map(presentConsent);
  context.show({ ...shown, memberships, consents }, () => [
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
  ]);
}

/** Joins all pages of the data about a person. */
async function exportPerson(context: CliContext, person: string, account: string): Promise<void> {
  const filter = { accountId: account, identifier: identifierOf(context, person), limit: EXPORT_PAGE_ROWS };
  const { reader, clock } = await context.open({ account });
  const read = async (after: PersonalDataPosition | null) =>
    context.accepted(await readPersonalData(reader, { ...filter, after }, clock.now()), FAILED);
  const first = await read(null);
  const messages = [...first.messages];
  const events = [...first.events];
  for (let { next } = first; next !== null; ) {
    const page = await read(next);
    messages.push(...page.messages);
    events.push(...page.events);
    next = page.next;
  }
  context.print(JSON.stringify({ ...first.data, messages, events }, null, 2));
}

const EXPORT_PAGE_ROWS = 200;

/** The newest entries of the consent history that are shown. */
const MAX_CONSENTS = 1000;

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

/** The identifier of an address, of a phone number, or `person` itself. */
function identifierOf(context: CliContext, person: string): string {
  if (IDENTIFIER.test(person.toLowerCase())) return person.toLowerCase();
  const email = readEmail(person);
  if ('value' in email) return emailIdentifier(email.value);
  const phone = parsePhone(person);
  if (phone === null) return context.usage(`${person} is not an address, phone number or identifier`);
  return phoneIdentifier(phone);
}
