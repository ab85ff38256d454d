import { createHash } from 'node:crypto';
import { HOUR, MINUTE } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import { inSlices, type Work } from '../core/concurrency/slices.ts';
import { accountLimitReached, invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Context } from '../store/context.ts';
import { createPortions } from '../store/maintenance/portions.ts';
import { type DescribedMedia, MEDIA_PART_BYTES, type MediaUse } from '../store/media.ts';
import type { NamedPageFilter, Page } from '../store/rows/page.ts';
import type { Tables } from '../store/tables.ts';
import { type CheckedImage, checkImageInSteps } from './images.ts';

/*
 * Images of an account, which its mail shows: each has a public address that nobody can guess. The content is checked
 * (images.ts), and stored once for each account, in parts. An image exists when all parts of its content are stored; what an
 * interrupted upload left is deleted in the background, like the contents of deleted images.
 */

export const MAX_MEDIA = 10_000;
/** Bytes of a file. */
export const MAX_MEDIA_BYTES = 5 * 1024 * 1024;

/** Each deleted content wakes the loop. */
const REMOVAL_INTERVAL_MS = HOUR;
/** Pause after a failure. */
const REMOVAL_RETRY_MS = MINUTE;
/** The writer's share of deletions, so that they take turns with requests. */
const REMOVAL_SHARE = 'deleted-media';
/** Contents that are deleted before the list is read again. */
const REMOVAL_BATCH_SIZE = 1000;
/** Templates, campaigns and sequences that the refusal of a deletion names. */
const MAX_NAMED_USES = 10;
/** Bytes that are hashed between two yields. */
const HASHED_PER_STEP = 256 * 1024;

export interface MediaFields {
  name: string;
  /** What the image shows, for people who do not see it; '' for none. */
  alt: string;
}

/** A file with its fields. */
export interface MediaUpload extends MediaFields {
  bytes: Buffer;
}

/**
 * Starts nothing: the loop of `background` runs at its start, when a content is no longer used, and every hour. Lists and
 * searches run through `reader`, everything else on the calling thread.
 */
export function createMedia({
  tables,
  reader,
  writer,
  clock,
  ids,
  log,
}: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock' | 'ids' | 'log'>) {
  const portions = createPortions({ writer, share: REMOVAL_SHARE });
  /** Contents whose parts this process is writing. */
  const storing = new Set<number>();

  async function removeUnused(): Promise<void> {
    const abandoned = tables.media
      .unfinished('storing', REMOVAL_BATCH_SIZE)
      .filter((content) => !storing.has(content));
    if (abandoned.length > 0)
      await writer.run((tx) => {
        for (const content of abandoned) tx.media.setState(content, 'deleting');
      });
    for (;;) {
      const unused = tables.media.unfinished('deleting', REMOVAL_BATCH_SIZE);
      if (unused.length === 0) return;
      for (const content of unused) {
        const completed = await portions.run((tx, rows) => {
          const removed = tx.media.removeParts(content, rows);
          if (removed === 0) tx.media.removeContent(content);
          return { rows, isDone: removed === 0 };
        });
        if (!completed) return;
      }
    }
  }

  const loop = createLoop({
    name: 'deleted-media',
    run: removeUnused,
    intervalMs: REMOVAL_INTERVAL_MS,
    retryMs: REMOVAL_RETRY_MS,
    log,
  });

  /** Adds an image to a content that is stored, in a unit of work. */
  function insert(
    tx: Tables,
    accountId: string,
    contentSeq: number,
    { name, alt }: MediaFields,
  ): DescribedMedia {
    const now = clock.now();
    const mediaId = ids.make('media');
    tx.media.insert({
      media_id: mediaId,
      account_id: accountId,
      content_seq: contentSeq,
      link: ids.token(),
      name,
      alt,
      created_at: now,
      updated_at: now,
    });
    const added = tx.media.get(accountId, mediaId);
    if (added === null) throw new Error(`${mediaId} was not stored`);
    return added;
  }

  /** Stores a content that the account does not have, and adds its image. */
  async function store(
    accountId: string,
    { bytes }: CheckedImage,
    hash: Buffer,
    fields: MediaFields,
    contentSeq: number,
  ): Promise<DescribedMedia | Refusal> {
    for (let n = 0; n * MEDIA_PART_BYTES < bytes.length; n++) {
      const part = bytes.subarray(n * MEDIA_PART_BYTES, (n + 1) * MEDIA_PART_BYTES);
      await writer.run((tx) => tx.media.insertPart(contentSeq, n, part), accountId);
    }
    return writer.run((tx): DescribedMedia | Refusal => {
      const full = countRefusal(tx, accountId);
      // Another upload has stored the same content meanwhile.
      const other = full === null ? tx.media.storedContent(accountId, hash) : null;
      tx.media.setState(contentSeq, full === null && other === null ? 'stored' : 'deleting');
      return full ?? insert(tx, accountId, other ?? contentSeq, fields);
    }, accountId);
  }

  return {
    /** Newest first. */
    list: (filter: NamedPageFilter): Promise<Page<DescribedMedia>> =>
      reader.table(filter.accountId, 'media', 'list', filter),
    get: (accountId: string, mediaId: string): DescribedMedia | Refusal =>
      findMedia(tables, accountId, mediaId),
    /** Refuses (`VALIDATION_ERROR` of `file`) what is not an image that mail programs show. */
    upload: async (
      accountId: string,
      { bytes, ...fields }: MediaUpload,
    ): Promise<DescribedMedia | Refusal> => {
      const image = await inSlices(checkImageInSteps(bytes), accountId);
      if (typeof image === 'string') return invalid('file', image);
      const hash = await inSlices(hashInSteps(image.bytes), accountId);
      const begun = await writer.run((tx): DescribedMedia | Refusal | number => {
        const full = countRefusal(tx, accountId);
        if (full !== null) return full;
        const known = tx.media.storedContent(accountId, hash);
        if (known !== null) return insert(tx, accountId, known, fields);
        const { type, width, height, frames } = image;
        const size = image.bytes.length;
        const content = {
          account_id: accountId,
          hash,
          state: 'storing' as const,
          type,
          width,
          height,
          frames,
          size,
        };
        const seq = tx.media.insertContent(content);
        storing.add(seq);
        return seq;
      }, accountId);
      if (typeof begun !== 'number') return begun;
      try {
        return await store(accountId, image, hash, fields, begun);
      } finally {
        storing.delete(begun);
        loop.wake();
      }
    },
    /** Changes the fields that are present. */
    update: (
      accountId: string,
      mediaId: string,
      fields: Partial<MediaFields>,
    ): Promise<DescribedMedia | Refusal> =>
      writer.run((tx): DescribedMedia | Refusal => {
        const media = findMedia(tx, accountId, mediaId);
        if (isRefusal(media)) return media;
        const changed = { ...media, ...fields, updated_at: clock.now() };
        const { seq, name, alt, updated_at } = changed;
        tx.media.update({ seq, name, alt, updated_at });
        return changed;
      }, accountId),
    /**
     * Deletes an image: its address answers 404 from then on. Refuses (`MEDIA_IN_USE`) one that a template, campaign or
     * sequence contains, unless `force`.
     */
    remove: async (accountId: string, mediaId: string, force: boolean): Promise<DescribedMedia | Refusal> => {
      const found = findMedia(tables, accountId, mediaId);
      if (isRefusal(found)) return found;
      const uses = force
        ? []
        : await reader.table(accountId, 'media', 'uses', accountId, found.link, MAX_NAMED_USES + 1);
      if (uses.length > 0) return useRefusal(uses);
      const removed = await writer.run((tx): DescribedMedia | Refusal => {
        const media = findMedia(tx, accountId, mediaId);
        if (isRefusal(media)) return media;
        tx.media.remove(media.seq);
        if (tx.media.countOfContent(media.content_seq) === 0)
          tx.media.setState(media.content_seq, 'deleting');
        return media;
      }, accountId);
      loop.wake();
      return removed;
    },
    background: {
      start: loop.start,
      stop: async (): Promise<void> => {
        portions.stop();
        await loop.stop();
      },
    },
  };
}

export type Media = ReturnType<typeof createMedia>;

function findMedia(tables: Tables, accountId: string, mediaId: string): DescribedMedia | Refusal {
  return (
    tables.media.get(accountId, mediaId) ?? refuse('MEDIA_NOT_FOUND', `This account has no image ${mediaId}`)
  );
}

function countRefusal(tables: Tables, accountId: string): Refusal | null {
  return tables.media.count(accountId) < MAX_MEDIA
    ? null
    : accountLimitReached('media', MAX_MEDIA, {
        resources: 'images',
        remedy: 'delete images that are not used',
      });
}

function useRefusal(uses: readonly MediaUse[]): Refusal {
  const named = uses.slice(0, MAX_NAMED_USES);
  const names = named.map(({ kind, name }) => `${kind} "${name}"`).join(', ');
  const more = uses.length > named.length ? ' and others' : '';
  return refuse(
    'MEDIA_IN_USE',
    `The image is used by ${names}${more}: mail with it would show a gap. To delete it anyway, add ?force=true`,
    { details: named.map(({ kind, id, name }) => ({ field: `${kind}Id`, name: id, message: name })) },
  );
}

function* hashInSteps(bytes: Buffer): Work<Buffer> {
  const hash = createHash('sha256');
  for (let at = 0; at < bytes.length; at += HASHED_PER_STEP) {
    hash.update(bytes.subarray(at, at + HASHED_PER_STEP));
    yield;
  }
  return hash.digest();
}
