import type { SMTPServerDataStream } from 'smtp-server';
import type { MailUpload } from './receive-budget.ts';

/**
 * The received content of a mail, or the limit that it exceeded: the size of one mail, or the memory for all mails that
 * are being received. Content beyond a limit is read and discarded.
 */
export type Body = Buffer | 'too-large' | 'out-of-memory';

export interface BodyReading {
  /** Rejects when the client disconnects before the end. */
  body: Promise<Body>;
  /** Releases the reserved memory; called when the mail has been processed. */
  release(): void;
}

/**
 * Maximum number of chunks of one mail. Each removed dot begins a new chunk, which costs as much as thousands of bytes:
 * a mail of nothing but dots would use all CPU time.
 */
const MAX_CHUNKS = 100_000;

/**
 * Reads the stream of one DATA command to its end (RFC 5321 §4.5.2: dots have been removed). `onTooLarge` is called
 * once when the client sends more than twice the limit, or too many chunks.
 */
export function readBody(
  stream: SMTPServerDataStream,
  upload: MailUpload,
  maxBytes: number,
  onTooLarge: () => void,
): BodyReading {
  let content = createGrowingBuffer(upload, maxBytes);
  let chunks = 0;
  let problem: 'too-large' | 'out-of-memory' | null = null;
  let isReported = false;

  const release = () => {
    upload.release();
    content = createGrowingBuffer(upload, maxBytes);
  };
  const discard = (reason: 'too-large' | 'out-of-memory') => {
    problem ??= reason;
    release();
  };
  const onChunk = (chunk: Buffer) => {
    upload.progress(chunk.length);
    if (stream.byteLength > maxBytes) discard('too-large');
    if (!isReported && (++chunks > MAX_CHUNKS || stream.byteLength > 2 * maxBytes)) {
      isReported = true;
      discard('too-large');
      onTooLarge();
    }
    if (problem === null && !content.add(chunk)) discard('out-of-memory');
  };
  const body = new Promise<Body>((resolve, reject) => {
    stream.on('data', onChunk);
    stream.once('end', () => {
      upload.finish();
      resolve(problem ?? content.bytes());
    });
    // An `error` is followed by `close`; after `end` this has no effect.
    stream.once('error', reject);
    stream.once('close', () => {
      if (!stream.readableEnded) release();
      reject(new Error('the client disconnected before the end of the mail'));
    });
  });
  return { body, release };
}

/**
 * One buffer that grows by doubling. A list of chunks would take many times the memory of a mail in which each line
 * begins with a dot, because each removed dot ends a chunk.
 */
function createGrowingBuffer(upload: MailUpload, maxBytes: number) {
  let buffer = Buffer.alloc(0);
  let length = 0;
  return {
    /** False, and nothing added, when the budget has no memory for it. */
    add: (chunk: Buffer): boolean => {
      if (length + chunk.length > buffer.length) {
        const doubled = Math.min(Math.max(2 * buffer.length, 16_384), maxBytes);
        const size = Math.max(doubled, length + chunk.length);
        if (!upload.reserve(size - buffer.length)) return false;
        const larger = Buffer.allocUnsafe(size);
        buffer.copy(larger, 0, 0, length);
        buffer = larger;
      }
      chunk.copy(buffer, length);
      length += chunk.length;
      return true;
    },
    bytes: (): Buffer => buffer.subarray(0, length),
  };
}
