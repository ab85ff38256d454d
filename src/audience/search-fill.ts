import type { BackgroundStep } from '../store/migrate/background-steps.ts';
import { searchKeys } from './search-key.ts';

/**
 * Adds contacts to the search index that were stored before there was one. Until it is through with an account, searches
 * there find beginnings only.
 */
export const CONTACT_SEARCH_STEP: BackgroundStep = {
  name: 'contact-search',
  description: 'contacts added to the search index',
  run: (tables, rows, isOver) => {
    let added = 0;
    for (const contact of tables.contacts.unindexed(rows)) {
      const { search_text } = searchKeys(contact);
      tables.contacts.addToIndex({ ...contact, search_text });
      added++;
      if (isOver()) break;
    }
    return added;
  },
};
