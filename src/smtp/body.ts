import type { SMTPServerDataStream } from 'smtp-server';
import type { Upload } from './mx/receive-budget.ts';

/**
 * Receives the content of a mail within its limits: the size of one mail, and the memory for all that are being
 * received. Content beyond a limit is read and discarded.
 */
export type Body = Buffer | 'too-large' | 'no-room';

export interface BodyReading {
  /** Rejects when the client is gone before the end. */
  body: Promise<Body>;
  /** Gives back the memory that is held for it: to be called when the mail has been processed. */
  release(): void;
}

/**
 * Chunks that one mail may come in. Each dot that is removed begins a new one, which costs as much as thousands
 * of octets: a mail of nothing but dots would take all of the processor.
 */
const MAX_CHUNKS = 100_000;

/**
 * Reads the stream of one DATA command to its end (RFC 5321 §4.5.2: dots have been removed). `onTooLarge` is called
 * once when the client sends more than twice the limit, or in far too many chunks: it does not mean to stop.
 */
export function readBody(
  stream: SMTPServerDataStream,
  upload: Upload,
  maxBytes: number,
  onTooLarge: () => void,
): BodyReading {
  let content = createGrowingBuffer(upload, maxBytes);
  let chunks = 0;
  let problem: 'too-large' | 'no-room' | null = null;
  let isHopeless = false;

  const release = () => {
    upload.release();
    content = createGrowingBuffer(upload, maxBytes);
  };
  const giveUp = (why: 'too-large' | 'no-room') => {
    problem ??= why;
    release();
  };
  const take = (chunk: Buffer) => {
    upload.progress(chunk.length);
    if (stream.byteLength > maxBytes) giveUp('too-large');
    if (!isHopeless && (++chunks > MAX_CHUNKS || stream.byteLength > 2 * maxBytes)) {
      isHopeless = true;
      giveUp('too-large');
      onTooLarge();
    }
    if (problem === null && !content.add(chunk)) giveUp('no-room');
  };
  const body = new Promise<Body>((resolve, reject) => {
    stream.on('data', take);
    stream.once('end', () => {
      upload.finish();
      resolve(problem ?? content.bytes());
    });
    // An `error` is followed by `close`; after `end`, this changes nothing.
    stream.once('error', reject);
    stream.once('close', () => {
      if (!stream.readableEnded) release();
      reject(new Error('the client disconnected before the end of the mail'));
    });
  });
  return { body, release };
}

/**
 * One buffer that grows by doubling. A list of the chunks would be many times as large as the mail where each line
 * begins with a dot, because each dot that is removed ends a chunk.
 */
function createGrowingBuffer(upload: Upload, maxBytes: number) {
  let buffer = Buffer.alloc(0);
  let length = 0;
  return {
    /** False when there is no memory for it. */
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
