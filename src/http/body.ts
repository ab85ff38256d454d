import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Upload } from './route.ts';

/**
 * Reads a JSON body from the stream, never more of it than is allowed: a body that says it is too large is
 * refused before the first byte, one that does not say is refused when it grows too large. All bodies that
 * are being read together stay under one bound as well.
 */
export interface BodyReader {
  /** The value, a refusal, or null when the caller hung up in the middle. */
  readJson(req: IncomingMessage, res: ServerResponse, limit: number): Promise<JsonBody | Refusal | null>;
  /** A body of one of these media types, to be read by whoever wants it, in its own time. */
  openUpload(req: IncomingMessage, res: ServerResponse, types: readonly string[]): Upload | Refusal;
  /** Whether the connection is in the middle of an upload: then it may take longer than other requests. */
  isUploading(connection: Duplex): boolean;
}

/** The caller went away while its upload was being read. */
export class HungUp extends Error {}

/** `value` is undefined when the body is empty. */
export interface JsonBody {
  value: unknown;
}

/** Deeper nesting than any request of ours has; it would only overflow somebody's stack. */
const MAX_DEPTH = 64;
/** Bytes of all bodies together that wait in memory for their end. */
const MAX_WAITING = 256 * 1024 * 1024;
/** An upload of which nothing comes for so long is given up. */
const IDLE_MS = 60_000;

export function createBodyReader(maxWaiting = MAX_WAITING): BodyReader {
  let waiting = 0;
  const uploading = new WeakSet<Duplex>();

  function collect(req: IncomingMessage, limit: number): Promise<Buffer | Refusal | null> {
    return new Promise((resolve) => {
      const chunks: Buffer[] = [];
      let size = 0;
      const finish = (result: Buffer | Refusal | null) => {
        waiting -= size;
        size = 0;
        req.removeListener('data', onData).removeListener('end', onEnd);
        req.removeListener('close', onGone).removeListener('error', onGone);
        resolve(result);
      };
      const onData = (chunk: Buffer) => {
        size += chunk.length;
        waiting += chunk.length;
        if (size > limit) finish(tooLarge(limit));
        else if (waiting > maxWaiting) {
          finish(refuse('UNAVAILABLE', 'too many large requests are being read; try again'));
        } else chunks.push(chunk);
      };
      const onEnd = () => finish(chunks.length === 1 ? (chunks[0] ?? null) : Buffer.concat(chunks));
      const onGone = () => finish(null);
      req.on('data', onData).on('end', onEnd).on('close', onGone).on('error', onGone);
    });
  }

  return {
    readJson: async (req, res, limit) => {
      if (!hasBody(req)) return { value: undefined };
      const type = mediaType(req, ['application/json']);
      if (isRefusal(type)) return type;
      if (Number(req.headers['content-length'] ?? 0) > limit) return tooLarge(limit);
      // RFC 9110 §10.1.1: the caller waits for our word before it sends the body.
      if (req.headers.expect !== undefined) res.writeContinue();
      const bytes = await collect(req, limit);
      return Buffer.isBuffer(bytes) ? parse(bytes) : bytes;
    },
    openUpload: (req, res, types) => {
      const type = mediaType(req, types);
      if (isRefusal(type)) return type;
      return { type, bytes: uploaded(req, res, uploading) };
    },
    isUploading: (connection) => uploading.has(connection),
  };
}

/** Whether a body comes with the request, maybe an empty one (RFC 9112 §6.3). */
export function hasBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length'];
  return req.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

function tooLarge(limit: number): Refusal {
  return refuse('PAYLOAD_TOO_LARGE', `the body is over the limit of ${limit} bytes`);
}

async function* uploaded(
  req: IncomingMessage,
  res: ServerResponse,
  uploading: WeakSet<Duplex>,
): AsyncGenerator<Buffer> {
  if (req.headers.expect !== undefined) res.writeContinue();
  const { socket } = req;
  uploading.add(socket);
  // Left before its end, the rest is thrown away by the server: the caller is to see its answer.
  const chunks = req.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const idle = setTimeout(() => req.destroy(), IDLE_MS);
      const { value, done } = await chunks.next().finally(() => clearTimeout(idle));
      if (done === true) return;
      yield value as Buffer;
    }
  } catch (error) {
    throw new HungUp('the caller hung up', { cause: error });
  } finally {
    uploading.delete(socket);
    await chunks.return?.();
  }
}

/** The one of `types` that the body says it is, in UTF-8 and not packed. */
function mediaType(req: IncomingMessage, types: readonly string[]): string | Refusal {
  const [type = '', ...parameters] = (req.headers['content-type'] ?? '').toLowerCase().split(';');
  if (!types.includes(type.trim())) {
    return refuse('UNSUPPORTED_MEDIA_TYPE', `the body must be sent as Content-Type: ${types.join(' or ')}`);
  }
  const charset = parameters.map((part) => part.trim()).find((part) => part.startsWith('charset='));
  if (charset !== undefined && !/^charset="?(utf-?8|us-ascii)"?$/.test(charset)) {
    return refuse('UNSUPPORTED_MEDIA_TYPE', 'the body must be sent as UTF-8');
  }
  const coding = req.headers['content-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'identity') {
    return refuse('UNSUPPORTED_MEDIA_TYPE', 'the body must be sent without Content-Encoding');
  }
  return type.trim();
}

function parse(bytes: Buffer): JsonBody | Refusal {
  if (bytes.length === 0) return { value: undefined };
  if (!isUtf8(bytes)) return refuse('INVALID_JSON', 'the body is not valid UTF-8');
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8').replace(/^\uFEFF/, ''));
  } catch (error) {
    // The parser's message quotes the body; only where it stopped is told.
    return refuse('INVALID_JSON', `the body is not valid JSON${positionIn(error)}`);
  }
  return deeperThan(value, MAX_DEPTH)
    ? invalid('body', `must not be nested more than ${MAX_DEPTH} levels deep`)
    : { value };
}

function positionIn(error: unknown): string {
  const position = error instanceof Error ? /at position (\d+)/.exec(error.message)?.[1] : undefined;
  return position === undefined ? '' : `, character ${position}`;
}

/** Walks level by level, without recursion. */
function deeperThan(value: unknown, max: number): boolean {
  let level = [value].filter(isContainer);
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === max) return true;
    const next: object[] = [];
    for (const container of level) {
      for (const inner of Object.values(container)) if (isContainer(inner)) next.push(inner);
    }
    level = next;
  }
  return false;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
