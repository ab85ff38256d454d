import type { BackgroundStep } from '../store/migrate/background-steps.ts';
import { searchKeys } from './search-key.ts';

/**
 * Adds contacts to the search index that were stored before there was one. Until all contacts of an account are in it,
 * searches there find prefixes only.
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
