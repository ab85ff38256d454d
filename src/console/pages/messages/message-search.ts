import { useEffect, useState } from 'preact/hooks';
import { ApiError, operate } from '../../api.ts';
import { type Data, useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { useMember } from '../../session.ts';

const PATH = '/web-setup/messages';

/** `examinedSince`: all messages since this time were searched; absent when the page ended for another reason. */
type MessagePage = Pick<DataOf<typeof PATH>, 'messages' | 'nextKey' | 'examinedSince'>;

/** What was found so far. */
interface FoundMessages extends MessagePage {
  /** Whether older messages are being searched. */
  isSearching: boolean;
}

const PAGE_SIZE = 50;
/** Pages that one search reads; each examines 5,000 messages. */
const MAX_PAGES = 20;

/**
 * Messages that match, newest first. A page of the API searches a limited number of messages: while it is short, the next ones
 * are read, too. The first page is read again after events; messages that it had before remain.
 */
export function useMessageSearch(
  filters: Readonly<Record<string, string | undefined>>,
): Data<FoundMessages> & { path: string } {
  const { accountId } = useMember();
  const parameters = { ...filters, limit: PAGE_SIZE };
  const path = addressOf(PATH, parameters);
  const key = `${accountId} ${path}`;
  const first = useOperation(PATH, parameters);
  const [older, setOlder] = useState<{ of: string; page: FoundMessages }>();
  const hasFirst = first.value !== null;
  useEffect(() => {
    if (first.value === null) return undefined;
    const abort = new AbortController();
    void readOlder(first.value, {
      read: (lastKey) =>
        operate('get', PATH, {
          account: accountId,
          parameters: { ...parameters, lastKey },
          signal: abort.signal,
        }),
      onPage: (page) => {
        if (!abort.signal.aborted) setOlder({ of: key, page });
      },
    });
    return () => abort.abort();
  }, [key, hasFirst]);
  const rest = older?.of === key ? older.page : null;
  return { ...first, path, value: first.value === null ? null : joined(first.value, rest) };
}

interface OlderDeps {
  read(lastKey: string): Promise<MessagePage>;
  /** Called with everything found so far after each page. */
  onPage(found: FoundMessages): void;
}

/** Reads the pages after `first` until enough was found. After an error, the person can continue at the last position. */
async function readOlder(first: MessagePage, { read, onPage }: OlderDeps): Promise<void> {
  let found: MessagePage = first;
  const isShort = () => found.examinedSince !== undefined && found.messages.length < PAGE_SIZE;
  if (!isShort()) return;
  for (let pages = 1; pages < MAX_PAGES && isShort() && found.nextKey !== undefined; pages++) {
    onPage({ ...found, isSearching: true });
    try {
      const page = await read(found.nextKey);
      found = { ...page, messages: [...found.messages, ...page.messages] };
    } catch (error) {
      if (error instanceof ApiError || (error instanceof DOMException && error.name === 'AbortError')) break;
      throw error;
    }
  }
  onPage({ ...found, isSearching: false });
}

/** The first page as it is now, then what was found before. */
function joined(first: MessagePage, rest: FoundMessages | null): FoundMessages {
  if (rest === null) return { ...first, isSearching: false };
  const ids = new Set(first.messages.map(({ messageId }) => messageId));
  return {
    ...rest,
    messages: [...first.messages, ...rest.messages.filter(({ messageId }) => !ids.has(messageId))],
  };
}
