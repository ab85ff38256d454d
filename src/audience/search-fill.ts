import type { BackgroundStep } from '../store/background-steps.ts';
import { searchKeys } from './search-key.ts';

const BATCH_SIZE = 200;

/**
 * Adds contacts to the search index that were stored before there was one. Until it is through with an account, searches
 * there find beginnings only.
 */
export const CONTACT_SEARCH_STEP: BackgroundStep = {
  name: 'contact-search',
  description: 'contacts added to the search index',
  run: (tables) => {
    const contacts = tables.contacts.unindexed(BATCH_SIZE);
    for (const contact of contacts) {
      const { search_text } = searchKeys(contact);
      tables.contacts.addToIndex({ ...contact, search_text });
    }
    return contacts.length;
  },
};
