import { LRUCache } from 'lru-cache';
import type { Context } from '../store/context.ts';
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
export interface MediaFile {
  media: DescribedMedia;
  bytes: Buffer;
  /** Must be called when the response has ended; again without effect. */
  close(): void;
}

interface OpenContent {
  bytes: Buffer;
  responses: number;
}

/** Begins empty. Looks up each request in the database, so that a deleted image is not served any more. */
export function createMediaFiles({ tables, reader }: Pick<Context, 'tables' | 'reader'>) {
  const cache = new LRUCache<number, Buffer>({
    maxSize: MAX_CACHED_BYTES,
    sizeCalculation: (bytes) => bytes.length + OVERHEAD,
  });
  const reading = new Map<number, Promise<Buffer | null>>();
  const open = new Map<number, OpenContent>();
  let openBytes = 0;

  async function read({
    account_id: accountId,
    content_seq: content,
  }: DescribedMedia): Promise<Buffer | null> {
    const stored = await reader.table(accountId, 'media', 'body', content);
    const bytes = stored === null ? null : Buffer.from(stored);
    if (bytes !== null) cache.set(content, bytes);
    return bytes;
  }

  async function bytesOf(media: DescribedMedia): Promise<Buffer | null> {
    const { content_seq: content } = media;
    const known = cache.get(content) ?? open.get(content)?.bytes;
    if (known !== undefined) return known;
    const running = reading.get(content);
    if (running !== undefined) return running;
    const started = read(media).finally(() => reading.delete(content));
    reading.set(content, started);
    return started;
  }

  function opened(media: DescribedMedia, bytes: Buffer): MediaFile {
    const { content_seq: content } = media;
    const entry = open.get(content) ?? { bytes, responses: 0 };
    if (entry.responses++ === 0) {
      open.set(content, entry);
      openBytes += entry.bytes.length;
    }
    let isOpen = true;
    return {
      media,
      bytes: entry.bytes,
      close: () => {
        if (!isOpen) return;
        isOpen = false;
        if (--entry.responses > 0) return;
        open.delete(content);
        openBytes -= entry.bytes.length;
      },
    };
  }

  return {
    /** The image with this link, without its bytes; null: there is none. */
    find: (link: string): DescribedMedia | null => (MEDIA_LINK.test(link) ? tables.media.byLink(link) : null),
    /**
     * Null: its content is not stored any more. `busy`: too many bytes are being sent. Rejects with ReadRejected when too many
     * reads wait.
     */
    open: async (media: DescribedMedia): Promise<MediaFile | null | 'busy'> => {
      if (!open.has(media.content_seq) && openBytes + media.size > MAX_OPEN_BYTES) return 'busy';
      const bytes = await bytesOf(media);
      return bytes === null ? null : opened(media, bytes);
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
