import * as z from 'zod';
import { type Contact, presentContact } from '../../audience/present.ts';
import { contactSearch, type SearchPage, type SearchPosition } from '../../audience/search.ts';
import { type SegmentPage, segmentContacts } from '../../audience/segments/evaluate.ts';
import { GLOBAL_STATUSES, type KnownContact } from '../../store/contacts/contacts.ts';
import type { Reader } from '../../store/readers/reads.ts';
import type { Page } from '../../store/rows/page.ts';
import { csvField } from './csv.ts';

/** The filters of `GET /web-setup/contacts`; a search has precedence over a segment. */
export const contactExportQuery = z.object({
  search: z.string().max(320).optional(),
  status: z.enum(GLOBAL_STATUSES).optional(),
  segmentId: z.string().max(100).optional(),
});

/** Columns of the file; an import reads those that it can write by the same names. */
const COLUMNS = [
  'contactIdentifier',
  'email',
  'phone',
  'firstName',
  'lastName',
  'language',
  'globalStatus',
  'consentMethod',
  'consentDetails',
  'consentIpAddress',
  'consentUserAgent',
  'consentTimestamp',
  'source',
  'addedBy',
  'createdAt',
  'updatedAt',
  'customFields',
] as const satisfies (keyof Contact)[];

const PAGE = 200;

/** All contacts that match, as lines of CSV. `turn`: awaited before each page. */
export async function* exportedContacts(
  reader: Reader,
  accountId: string,
  filter: z.output<typeof contactExportQuery>,
  turn: () => Promise<void>,
): AsyncGenerator<string> {
  yield `${COLUMNS.join(',')}\r\n`;
  for await (const rows of pages(reader, accountId, filter)) {
    await turn();
    yield rows
      .map(presentContact)
      .map((contact) => `${COLUMNS.map((column) => csvField(contact[column])).join(',')}\r\n`)
      .join('');
  }
}

async function* pages(
  reader: Reader,
  accountId: string,
  { search = '', status, segmentId }: z.output<typeof contactExportQuery>,
): AsyncGenerator<KnownContact[]> {
  if (search.trim() === '' && segmentId !== undefined) {
    // A person who joins the segment while it is exported is in the file or not.
    const now = Date.now();
    for (let beforeSeq: number | null = null; ; ) {
      const of: SegmentPage = { segmentId, status: status ?? null, beforeSeq, limit: PAGE };
      const page: Page<KnownContact> | null = await reader.query(
        accountId,
        segmentContacts,
        accountId,
        of,
        now,
      );
      if (page === null) throw new Error(`segment ${segmentId} does not exist`);
      yield page.rows;
      const last = page.rows.at(-1);
      if (!page.more || last === undefined) return;
      beforeSeq = last.seq;
    }
  }
  const filter = { accountId, limit: PAGE, ...(status === undefined ? {} : { status }) };
  if (search.trim() === '') {
    for (let beforeSeq: number | null = null; ; ) {
      const page: Page<KnownContact> = await reader.table(accountId, 'contacts', 'list', {
        ...filter,
        beforeSeq,
      });
      yield page.rows;
      const last = page.rows.at(-1);
      if (!page.more || last === undefined) return;
      beforeSeq = last.seq;
    }
  }
  for (let after: SearchPosition | null = null; ; ) {
    const found: SearchPage = await reader.query(accountId, contactSearch, {
      ...filter,
      text: search,
      after,
    });
    yield found.rows.map(({ contact }) => contact);
    if (found.next === null) return;
    after = found.next;
  }
}
