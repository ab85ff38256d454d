import * as z from 'zod';
import type { Clock } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import type { Writer } from '../store/database/writer.ts';
import type { SavedViewRow } from '../store/people/saved-views.ts';
import type { Tables } from '../store/tables.ts';

/** Saved views of one person, in all accounts. */
const MAX_VIEWS = 100;

const querySchema = z
  .record(z.string().min(1).max(40), z.string().min(1).max(400))
  .refine((query) => Object.keys(query).length <= 20, 'must have at most 20 fields');

/** What a person saves. */
export const savedViewSchema = z.strictObject({
  page: z.string().regex(/^[a-z][\w/-]{0,99}$/, 'must be the path of a page'),
  name: z.string().trim().min(1).max(60),
  query: querySchema,
});

/** The person and the account of a request; null: it is about the installation. */
export interface ViewOwner {
  personId: string;
  accountId: string | null;
}

/** The saved views of people, which belong to a person and an account. */
export function createSavedViews(deps: { tables: Tables; writer: Writer; clock: Clock; ids: Ids }) {
  const { tables, writer, clock, ids } = deps;
  return {
    /** The views of the person in the account, oldest first. */
    list: ({ personId, accountId }: ViewOwner): SavedView[] =>
      tables.savedViews
        .ofPerson(personId, MAX_VIEWS)
        .filter((row) => row.account_id === accountId)
        .map(presentView),
    /** Replaces a view of the same page with this name. */
    save: (
      { personId, accountId }: ViewOwner,
      { page, name, query }: z.output<typeof savedViewSchema>,
    ): Promise<SavedView | Refusal> =>
      writer.run(({ savedViews }) => {
        const existing = savedViews.ofPerson(personId, MAX_VIEWS);
        const replaced = existing.find(
          (row) => row.account_id === accountId && row.page === page && row.name === name,
        );
        if (replaced !== undefined) savedViews.remove(replaced.view_id, personId);
        else if (existing.length >= MAX_VIEWS)
          return refuse('LIMIT_REACHED', `You have ${MAX_VIEWS} saved views: delete one first`);
        const row = {
          view_id: ids.make('view'),
          person_id: personId,
          account_id: accountId,
          page,
          name,
          query: JSON.stringify(query),
          created_at: clock.now(),
        };
        savedViews.insert(row);
        return presentView(row);
      }),
    remove: (personId: string, viewId: string): Promise<Refusal | null> =>
      writer.run(({ savedViews }) =>
        savedViews.remove(viewId, personId) ? null : refuse('NOT_FOUND', `You have no saved view ${viewId}`),
      ),
  };
}

export type SavedViews = ReturnType<typeof createSavedViews>;

/** Filters of a list that a person saved under a name. */
export type SavedView = ReturnType<typeof presentView>;

function presentView({ view_id, page, name, query }: SavedViewRow) {
  return { id: view_id, page, name, query: querySchema.parse(JSON.parse(query)) };
}
