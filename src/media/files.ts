import { LRUCache } from 'lru-cache';
import { createTally } from '../core/concurrency/tally.ts';
import type { Context } from '../store/context.ts';
import { ReadRejected } from '../store/database/failure.ts';
import type { DescribedMedia } from '../store/media.ts';

/*
 * The bytes of images for public requests. A campaign brings thousands of requests for the same image in a minute: it is read
 * once, on a reader thread, and shared by all responses.
 */

/** Bytes of images that were requested last. */
const MAX_CACHED_BYTES = 64 * 1024 * 1024;
/** Added to each, to limit their number. */
const OVERHEAD = 1024;
/** Bytes of different images that are being sent: clients may read slowly. */
const MAX_OPEN_BYTES = 256 * 1024 * 1024;

/** An image that is being sent. */
interface MediaFile {
  bytes: Buffer;
  /** Must be called when the response has ended; again without effect. */
  close(): void;
}

interface OpenContent {
  bytes: Promise<Buffer | null>;
  responses: number;
}

/** Begins empty. Looks up each request in the database, so that a deleted image is not served any more. */
export function createMediaFiles({ tables, reader }: Pick<Context, 'tables' | 'reader'>) {
  const cache = new LRUCache<number, Buffer>({
    maxSize: MAX_CACHED_BYTES,
    sizeCalculation: (bytes) => bytes.length + OVERHEAD,
  });
  /** Contents that are being read or sent; their bytes are counted from the beginning of the read. */
  const open = new Map<number, OpenContent>();
  /** By account. An account may have as many bytes open as it leaves free for others. */
  const openBytes = createTally();

  async function bytesOf({
    account_id: accountId,
    content_seq: content,
  }: DescribedMedia): Promise<Buffer | null> {
    const cached = cache.get(content);
    if (cached !== undefined) return cached;
    const stored = await reader.table(accountId, 'media', 'body', content);
    if (stored === null) return null;
    const bytes = Buffer.from(stored);
    cache.set(content, bytes);
    return bytes;
  }

  /** Null: too many bytes are open. */
  function enter(media: DescribedMedia): (Pick<OpenContent, 'bytes'> & Pick<MediaFile, 'close'>) | null {
    const { account_id: accountId, content_seq: content, size } = media;
    let entry = open.get(content);
    if (entry === undefined) {
      if (openBytes.of(accountId) + size > MAX_OPEN_BYTES - openBytes.total - size) return null;
      entry = { bytes: bytesOf(media), responses: 0 };
      open.set(content, entry);
      openBytes.add(accountId, size);
    }
    const entered = entry;
    entered.responses++;
    let isOpen = true;
    return {
      bytes: entered.bytes,
      close: () => {
        if (!isOpen) return;
        isOpen = false;
        if (--entered.responses > 0) return;
        open.delete(content);
        openBytes.add(accountId, -size);
      },
    };
  }

  return {
    /** The image with this link, without its bytes; null: there is none. */
    find: (link: string): DescribedMedia | null => (MEDIA_LINK.test(link) ? tables.media.byLink(link) : null),
    /** Null: its content is not stored any more. `busy`: too many bytes are being sent, or too many reads wait. */
    open: async (media: DescribedMedia): Promise<MediaFile | null | 'busy'> => {
      const entered = enter(media);
      if (entered === null) return 'busy';
      const { close } = entered;
      try {
        const bytes = await entered.bytes;
        if (bytes !== null) return { bytes, close };
      } catch (error) {
        close();
        if (error instanceof ReadRejected) return 'busy';
        throw error;
      }
      close();
      return null;
    },
  };
}

/** A link as ids.token creates it. */
export const MEDIA_LINK = /^[A-Za-z0-9]{43}$/;

export type MediaFiles = ReturnType<typeof createMediaFiles>;

/** Endings of addresses by type. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
};

/** The last part of the address of an image. */
export function mediaFileName({ link, type }: Pick<DescribedMedia, 'link' | 'type'>): string {
  return `${link}.${EXTENSIONS[type] ?? 'bin'}`;
}

/** The link in the last part of an address. */
export function linkOfFileName(name: string): string {
  return name.replace(/\.[a-z]{3,4}$/, '');
}
