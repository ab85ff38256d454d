import { operate } from '../../api.ts';
import { saveFile } from '../../parts/save-file.ts';

const PATH = '/web-setup/contacts/{contactIdentifier}/personal-data';
/** The rows of a page: the maximum of the API. */
const PAGE_SIZE = 200;

/** Saves all data about a person as a JSON file: the pages of the API, joined. */
export async function savePersonalData(identifier: string, account: string, file: string): Promise<void> {
  const read = (lastKey?: string) =>
    operate('get', PATH, {
      account,
      parameters: {
        contactIdentifier: identifier,
        limit: PAGE_SIZE,
        ...(lastKey === undefined ? {} : { lastKey }),
      },
    });
  const { nextKey, count: _, ...data } = await read();
  for (let key = nextKey; key !== undefined; ) {
    const page = await read(key);
    data.messages.push(...page.messages);
    data.events.push(...page.events);
    key = page.nextKey;
  }
  saveFile(file, new Blob([JSON.stringify(data, null, 2)], { type: 'application/json' }));
}
