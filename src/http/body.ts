import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { type JsonBody, joined, parseJson, parseJsonList } from './json-parse.ts';
import { createJsonScan, type JsonList } from './json-scan.ts';
import type { Upload } from './route.ts';

/**
 * Reads a JSON body from the stream, never more of it than is allowed: a body that says it is too large is
 * refused before the first byte, one that does not say is refused when it grows too large. All bodies that
 * are being read together stay under one bound as well.
 */
export interface BodyReader {
  /**
   * The value, a refusal, or null when the caller hung up in the middle. With `list` the elements of that list
   * are `JsonElement`s: checked, but built only when they are asked for.
   */
  readJson(
    req: IncomingMessage,
    res: ServerResponse,
    limit: number,
    list?: JsonList,
  ): Promise<JsonBody | Refusal | null>;
  /** A body of one of these media types, to be read by whoever wants it, in its own time. */
  openUpload(req: IncomingMessage, res: ServerResponse, types: readonly string[]): Upload | Refusal;
  /** Whether the connection is in the middle of an upload: then it may take longer than other requests. */
  isUploading(connection: Duplex): boolean;
}

/** The caller went away while its upload was being read. */
export class HungUp extends Error {}

/** Bytes of all bodies together that wait in memory for their end. */
const MAX_WAITING = 256 * 1024 * 1024;
/** An upload of which nothing comes for so long is given up. */
const IDLE_MS = 60_000;

export function createBodyReader(maxWaiting = MAX_WAITING): BodyReader {
  let waiting = 0;
  const uploading = new WeakSet<Duplex>();

  /** `inspect` sees every chunk; what it refuses is not read any further. */
  function collect(
    req: IncomingMessage,
    limit: number,
    inspect: (chunk: Buffer) => Refusal | null,
  ): Promise<Buffer[] | Refusal | null> {
    return new Promise((resolve) => {
      const chunks: Buffer[] = [];
      let size = 0;
      const finish = (result: Buffer[] | Refusal | null) => {
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
        } else {
          const refusal = inspect(chunk);
          if (refusal === null) chunks.push(chunk);
          else finish(refusal);
        }
      };
      const onEnd = () => finish(chunks);
      const onGone = () => finish(null);
      req.on('data', onData).on('end', onEnd).on('close', onGone).on('error', onGone);
    });
  }

  return {
    readJson: async (req, res, limit, list) => {
      if (!hasBody(req)) return { value: undefined };
      const type = mediaType(req, ['application/json']);
      if (isRefusal(type)) return type;
      if (Number(req.headers['content-length'] ?? 0) > limit) return tooLarge(limit);
      // RFC 9110 §10.1.1: the caller waits for our word before it sends the body.
      if (req.headers.expect !== undefined) res.writeContinue();
      const scan = createJsonScan(list);
      const chunks = await collect(req, limit, scan.push);
      if (chunks === null || isRefusal(chunks)) return chunks;
      const bytes = await joined(chunks);
      const elements = scan.elements();
      return list === undefined || elements === null
        ? parseJson(bytes)
        : parseJsonList(bytes, list.name, elements);
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
