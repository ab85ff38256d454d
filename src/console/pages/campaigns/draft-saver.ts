import { ApiError } from '../../api.ts';
import type { BodyOf, DataOf } from '../../operations.ts';

/** A campaign in the API. */
export const CAMPAIGN = '/web-setup/campaigns/{campaignId}';

export type CampaignResource = DataOf<typeof CAMPAIGN>['campaign'];

/** What is prepared with a campaign: an author chooses it, and a person who may send sends it. */
export type Choices = NonNullable<BodyOf<typeof CAMPAIGN, 'patch'>['prepared']>;

/** What the composer changes. */
export interface DraftFields {
  name: string;
  prepared: Choices;
}

export type SaveState =
  /** `at`: ISO 8601. */
  | { kind: 'saved'; at: string }
  /** Changed, and saved soon. */
  | { kind: 'changed' }
  /** `isRepeated`: it is tried again without the person. */
  | { kind: 'failed'; error: ApiError; isRepeated: boolean }
  /** Another person changed the draft, or sent or deleted it, since it was read: nothing is replaced. Null: it was deleted. */
  | { kind: 'conflict'; theirs: CampaignResource | null };

export interface DraftSaver {
  /** Saves the fields soon. */
  change(fields: DraftFields): void;
  /** Saves now what is not saved; true: everything is saved. `isLast`: also if the page is closed meanwhile. */
  flush(isLast?: boolean): Promise<boolean>;
  /** After a conflict: the fields of the other person replace the own ones, without a request. */
  adopt(theirs: CampaignResource): void;
  /** After a conflict: the own fields replace those of the other person. */
  overwrite(theirs: CampaignResource): Promise<boolean>;
}

export interface DraftSaverOptions {
  campaign: CampaignResource;
  /** Stores fields; refused with the reason `CHANGED` if the campaign was changed since `expectedUpdatedAt`. */
  store(
    fields: DraftFields & { expectedUpdatedAt: string },
    options: { keepalive: boolean },
  ): Promise<CampaignResource>;
  read(): Promise<CampaignResource>;
  onState(state: SaveState): void;
  onStored(campaign: CampaignResource): void;
}

const DELAY_MS = 800;
const FIRST_RETRY_MS = 2000;
const MAX_RETRY_MS = 30_000;
const MAX_UNCERTAIN = 20;

/** The fields of a stored draft. */
export function fieldsOf({ name, prepared }: CampaignResource): DraftFields {
  return { name, prepared: prepared ?? {} };
}

/**
 * Saves a draft while a person changes it: one request at a time, with the newest fields. A request that may succeed later
 * is repeated. What another person stored in the meantime is never replaced without a question.
 */
export function createDraftSaver({
  campaign,
  store,
  read,
  onState,
  onStored,
}: DraftSaverOptions): DraftSaver {
  /** The campaign as it was last read or stored. */
  let base = campaign;
  /** What is not stored yet. */
  let wanted: DraftFields | null = null;
  /** Fields of requests whose responses did not arrive: any of them may be stored. */
  let uncertain: DraftFields[] = [];
  let last = Promise.resolve(true);
  let timer: number | undefined;
  let retryMs = FIRST_RETRY_MS;
  let isConflict = false;

  function schedule(delayMs: number): void {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => void flush(), delayMs);
  }

  /** After the requests before it, also failed ones. */
  function flush(isLast = false): Promise<boolean> {
    window.clearTimeout(timer);
    const saveNext = () => saveAll(isLast);
    last = last.then(saveNext, saveNext);
    return last;
  }

  async function saveAll(isLast: boolean): Promise<boolean> {
    if (isConflict) return false;
    if (wanted === null) return true;
    const isSaved = await save(wanted, isLast);
    // Changed meanwhile.
    return isSaved && wanted !== null ? saveAll(isLast) : isSaved;
  }

  async function save(fields: DraftFields, keepalive: boolean): Promise<boolean> {
    try {
      const stored = await store({ ...fields, expectedUpdatedAt: base.updatedAt }, { keepalive });
      settle(stored, fields);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 404 || error.status === 409) return compare(fields, error);
      if (error.code === 'NETWORK' || error.status >= 500)
        uncertain = [...uncertain, fields].slice(-MAX_UNCERTAIN);
      fail(error);
      return false;
    }
  }

  /** After a refusal because of the state of the campaign: continues if nobody else changed it. */
  async function compare(fields: DraftFields, refused: ApiError): Promise<boolean> {
    let theirs: CampaignResource | null = null;
    try {
      if (refused.status === 409) theirs = await read();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status !== 404) {
        fail(error);
        return false;
      }
    }
    const own = [fieldsOf(base), fields, ...uncertain];
    const isOwn = theirs?.status === 'draft' && own.some((each) => isSame(each, fieldsOf(theirs)));
    if (theirs !== null && isOwn) {
      base = theirs;
      return save(fields, false);
    }
    isConflict = true;
    onState({ kind: 'conflict', theirs });
    return false;
  }

  function settle(stored: CampaignResource, fields: DraftFields): void {
    base = stored;
    uncertain = [];
    retryMs = FIRST_RETRY_MS;
    if (wanted === fields) wanted = null;
    onState(wanted === null ? { kind: 'saved', at: stored.updatedAt } : { kind: 'changed' });
    onStored(stored);
  }

  function fail(error: ApiError): void {
    const isRepeated = error.code === 'NETWORK' || error.status === 429 || error.status >= 500;
    onState({ kind: 'failed', error, isRepeated });
    if (!isRepeated) return;
    schedule(retryMs);
    retryMs = Math.min(2 * retryMs, MAX_RETRY_MS);
  }

  return {
    change: (fields) => {
      wanted = fields;
      if (isConflict) return;
      onState({ kind: 'changed' });
      schedule(DELAY_MS);
    },
    flush,
    adopt: (theirs) => {
      base = theirs;
      wanted = null;
      isConflict = false;
      window.clearTimeout(timer);
      onState({ kind: 'saved', at: theirs.updatedAt });
    },
    overwrite: (theirs) => {
      base = theirs;
      isConflict = false;
      return flush();
    },
  };
}

/** Whether two drafts have the same fields. */
export function isSame(one: DraftFields, other: DraftFields): boolean {
  return textOf(one) === textOf(other);
}

function textOf({ name, prepared }: DraftFields): string {
  const filled = Object.entries(prepared).filter(([, value]) => value !== undefined);
  return JSON.stringify([name, filled.toSorted(([a], [b]) => (a < b ? -1 : 1))]);
}
