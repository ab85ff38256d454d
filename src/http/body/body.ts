import type { Hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { createJsonScan, type JsonList } from '../../core/json-scan.ts';
import { isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import { whenClosed } from '../call-signals.ts';
import type { Upload } from '../route.ts';
import { type BodyOwner, createBodyBudget } from './body-budget.ts';
import { type JsonBody, joined, parseJsonList, parseJsonWithStrings } from './json-parse.ts';
import { createRepeatedStrings } from './repeated-strings.ts';

/**
 * Reads JSON bodies up to their limit, and opens uploads as streams. A body with a larger Content-Length is refused before
 * its first byte, one without Content-Length when it exceeds the limit. A common limit applies to all bodies in progress.
 */
export interface BodyReader {
  /**
   * Receives a body, which is parsed when the caller wants it; a refusal, or null when the client disconnected. Waits for
   * `turn` after every `BYTES_PER_TURN` of the body, and before parsing. With `list` the elements of that list are
   * `JsonElement`s: checked, and parsed on demand. `digest` is updated with the bytes.
   */
  receiveJson(
    req: IncomingMessage,
    res: ServerResponse,
    reading: {
      limit: number;
      owner: BodyOwner;
      turn(): Promise<void>;
      list?: JsonList | undefined;
      digest?: Hash;
    },
  ): Promise<ReceivedJson | Refusal | null>;
  /**
   * Returns a body of one of `types`, by default of any media type, or a refusal; null: the client disconnected. It counts like
   * a JSON body, in memory and in pace.
   */
  readFile(
    req: IncomingMessage,
    res: ServerResponse,
    reading: {
      limit: number;
      owner: BodyOwner;
      turn(): Promise<void>;
      types?: readonly string[] | undefined;
    },
  ): Promise<Buffer | Refusal | null>;
  /** Opens a body of one of these media types as a stream. */
  openUpload(req: IncomingMessage, res: ServerResponse, types: readonly string[]): Upload | Refusal;
  /** Whether an upload is in progress on the connection: it may take longer than other requests. */
  isUploading(connection: Duplex): boolean;
}

/** A JSON body that has arrived. */
export interface ReceivedJson {
  /** To be called once. */
  parse(): Promise<JsonBody | Refusal>;
}

/** The client disconnected during an upload. */
export class UploadAborted extends Error {}

/** The client sent an upload too slowly. */
export class UploadTooSlow extends Error {}

/** Bytes of all JSON bodies, from their first byte to the end of their response. */
const MAX_WAITING = 128 * 1024 * 1024;
/**
 * Bytes of a body that are read in one turn of its account, at least 64 KiB of which Node has read ahead. Without
 * this Node reads up to 2 MiB of each connection in every iteration of the event loop.
 */
const BYTES_PER_TURN = 128 * 1024;
/** The minimum pace at which a body must arrive. */
export interface BodyPace {
  /** Maximum time without a byte. */
  idleMs: number;
  /** The rate is checked after this time. */
  graceMs: number;
  bytesPerSecond: number;
}

export interface BodyPaces {
  /** Bodies that are collected in memory. */
  json: BodyPace;
  /** Bodies that are read as streams: they occupy no memory, and clients may generate them while they send. */
  upload: BodyPace;
}

const PACES: BodyPaces = {
  json: { idleMs: 20_000, graceMs: 10_000, bytesPerSecond: 8192 },
  upload: { idleMs: 60_000, graceMs: 60_000, bytesPerSecond: 1024 },
};
/** Maximum interval between checks of the pace of a body. */
const PACE_CHECK_MS = 1000;

/**
 * `maxWaiting`: bytes of all JSON bodies together, default 128 MiB. Each reader has a separate budget, so that a
 * listener creates one. `receiveJson` and uploads check the pace of the body every second while it arrives.
 */
export function createBodyReader(options: { maxWaiting?: number; paces?: BodyPaces } = {}): BodyReader {
  const budget = createBodyBudget(options.maxWaiting ?? MAX_WAITING);
  const paces = options.paces ?? PACES;
  const repeated = createRepeatedStrings();
  const uploading = new WeakSet<Duplex>();

  /**
   * Collects the chunks of a body. `inspect` is called with every chunk; reading ends when it refuses one. A body holds its
   * share until the response has ended: its parsed value occupies at least as much memory. Null: the client disconnected.
   */
  function collect(
    req: IncomingMessage,
    res: ServerResponse,
    limit: number,
    owner: BodyOwner,
    turn: () => Promise<void>,
    inspect: (chunk: Buffer) => Refusal | null,
  ): Promise<Buffer[] | Refusal | null> {
    return new Promise((resolve) => {
      const share = budget.open(owner);
      const pace = paceMeter(paces.json);
      const chunks: Buffer[] = [];
      let size = 0;
      let bytesOfTurn = 0;
      const slow = setInterval(() => {
        if (!req.isPaused() && pace.isTooSlow()) finish(tooSlow());
      }, pace.checkMs);
      const finish = (result: Buffer[] | Refusal | null) => {
        clearInterval(slow);
        if (Array.isArray(result)) whenClosed(res, share.release);
        else share.release();
        req.removeListener('data', onData).removeListener('end', onEnd);
        req.removeListener('close', onClosed).removeListener('error', onClosed);
        resolve(result);
      };
      const onData = (chunk: Buffer) => {
        size += chunk.length;
        pace.count(chunk.length);
        const refusal = size > limit ? tooLarge(limit) : (share.take(chunk.length) ?? inspect(chunk));
        if (refusal !== null) {
          finish(refusal);
          return;
        }
        chunks.push(chunk);
        bytesOfTurn += chunk.length;
        if (bytesOfTurn >= BYTES_PER_TURN) void readInNextTurn();
      };
      const readInNextTurn = async () => {
        bytesOfTurn = 0;
        req.pause();
        pace.pause();
        await turn();
        pace.resume();
        req.resume();
      };
      const onEnd = () => finish(chunks);
      const onClosed = () => finish(null);
      req.on('data', onData).on('end', onEnd).on('close', onClosed).on('error', onClosed);
    });
  }

  return {
    receiveJson: async (req, res, { limit, owner, turn, list, digest }) => {
      if (!hasBody(req)) return { parse: async () => ({ value: undefined }) };
      const type = mediaType(req, ['application/json'], 'UTF-8');
      if (isRefusal(type)) return type;
      if (Number(req.headers['content-length'] ?? 0) > limit) return tooLarge(limit);
      // RFC 9110 §10.1.1: the client waits for the 100 before it sends the body.
      if (req.headers.expect !== undefined) res.writeContinue();
      const { accountId } = owner;
      const scan = createJsonScan(list === undefined ? { find: repeated.finder(accountId) } : { list });
      const [before, after] = list?.isBody === true ? aroundList(list.name) : [];
      if (before !== undefined) scan.push(before);
      const collected = await collect(req, res, limit, owner, turn, (chunk) => {
        digest?.update(chunk);
        return scan.push(chunk);
      });
      if (collected === null || isRefusal(collected)) return collected;
      const parse = async () => {
        await turn();
        if (after !== undefined) scan.push(after);
        const chunks =
          before === undefined || after === undefined ? collected : [before, ...collected, after];
        const elements = scan.elements();
        return list === undefined || elements === null
          ? parseJsonWithStrings(chunks, scan.longStrings(), repeated, accountId)
          : parseJsonList(await joined(chunks, accountId), list.name, elements, accountId);
      };
      return { parse };
    },
    readFile: async (req, res, { limit, owner, turn, types }) => {
      if (!hasBody(req)) return Buffer.alloc(0);
      const type = types === undefined ? null : mediaType(req, types, 'UTF-8');
      if (isRefusal(type)) return type;
      if (Number(req.headers['content-length'] ?? 0) > limit) return tooLarge(limit);
      if (req.headers.expect !== undefined) res.writeContinue();
      const chunks = await collect(req, res, limit, owner, turn, () => null);
      if (chunks === null || isRefusal(chunks)) return chunks;
      await turn();
      return Buffer.concat(chunks);
    },
    openUpload: (req, res, types) => {
      const media = mediaType(req, types, 'UTF-8 or UTF-16');
      if (isRefusal(media)) return media;
      const bytes = uploaded(req, res, uploading, paces.upload);
      const mark = BYTE_ORDER_MARKS[media.charset];
      return { type: media.type, bytes: mark === undefined ? bytes : withMark(bytes, mark) };
    },
    isUploading: (connection) => uploading.has(connection),
  };
}

/** The bytes that make a list the only field of an object. */
function aroundList(name: string): [before: Buffer, after: Buffer] {
  return [Buffer.from(`{${JSON.stringify(name)}:`), Buffer.from('}')];
}

/** Whether the request has a body, which can be empty (RFC 9112 §6.3). */
export function hasBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length'];
  return req.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

function tooLarge(limit: number): Refusal {
  return refuse('PAYLOAD_TOO_LARGE', `The body exceeds the limit of ${limit} bytes`);
}

async function* uploaded(
  req: IncomingMessage,
  res: ServerResponse,
  uploading: WeakSet<Duplex>,
  paceLimits: BodyPace,
): AsyncGenerator<Buffer> {
  if (req.headers.expect !== undefined) res.writeContinue();
  const { socket } = req;
  uploading.add(socket);
  // If the handler stops before the end, the server discards the rest, so that the client reads the response.
  const chunks: AsyncIterator<Buffer> = req.iterator({ destroyOnReturn: false });
  const pace = paceMeter(paceLimits);
  let isStalled = false;
  try {
    for (;;) {
      pace.resume();
      const next = await nextChunk(chunks, pace);
      if (next.done === true) return;
      pace.count(next.value.length);
      // The time until the next chunk is requested does not count against the client.
      pace.pause();
      yield next.value;
    }
  } catch (error) {
    if (error instanceof UploadTooSlow) {
      isStalled = true;
      throw error;
    }
    throw new UploadAborted('the client disconnected during the upload', { cause: error });
  } finally {
    uploading.delete(socket);
    const ended = chunks.return?.();
    // For a stalled upload, `return` waits for the chunk that has not arrived.
    if (!isStalled) await ended;
  }
}

/** Returns the next chunk; throws UploadTooSlow when it does not arrive in time. */
async function nextChunk(chunks: AsyncIterator<Buffer>, pace: PaceMeter): Promise<IteratorResult<Buffer>> {
  let timer: NodeJS.Timeout | undefined;
  const slow = new Promise<never>((_, reject) => {
    timer = setInterval(() => {
      if (pace.isTooSlow()) reject(new UploadTooSlow('the upload is too slow'));
    }, pace.checkMs);
  });
  try {
    return await Promise.race([chunks.next(), slow]);
  } finally {
    clearInterval(timer);
  }
}

interface PaceMeter {
  checkMs: number;
  count(bytes: number): void;
  isTooSlow(): boolean;
  /** The time from `pause` to `resume` is not counted. */
  pause(): void;
  resume(): void;
}

function paceMeter({ idleMs, graceMs, bytesPerSecond }: BodyPace): PaceMeter {
  const began = performance.now();
  let received = 0;
  let lastAt = began;
  let pausedMs = 0;
  let pausedAt = began;
  return {
    checkMs: Math.min(PACE_CHECK_MS, idleMs, graceMs),
    count: (bytes) => {
      received += bytes;
      lastAt = performance.now();
    },
    isTooSlow: () => {
      const now = performance.now();
      if (now - lastAt >= idleMs) return true;
      const late = now - began - pausedMs - graceMs;
      return late > 0 && received < (late / 1000) * bytesPerSecond;
    },
    pause: () => {
      pausedAt = performance.now();
    },
    resume: () => {
      lastAt = performance.now();
      pausedMs += lastAt - pausedAt;
      pausedAt = lastAt;
    },
  };
}

/** The refusal of a JSON body that arrives too slowly. */
function tooSlow(): Refusal {
  return refuse('REQUEST_TIMEOUT', 'The body arrived too slowly: none of it was accepted');
}

/** What readers of uploads recognize UTF-16 by. Without an order it is little-endian, as in browsers and on Windows. */
const BYTE_ORDER_MARKS: Partial<Record<string, Buffer>> = {
  'utf-16': Buffer.from([0xff, 0xfe]),
  'utf-16le': Buffer.from([0xff, 0xfe]),
  'utf-16be': Buffer.from([0xfe, 0xff]),
};
const ALLOWED_CHARSETS = {
  'UTF-8': /^(?:utf-?8|us-ascii)$/,
  'UTF-8 or UTF-16': /^(?:utf-?8|us-ascii|utf-16(?:le|be)?)$/,
};

/** Begins the text with `mark`, unless it begins with a byte order mark. */
async function* withMark(bytes: AsyncIterable<Buffer>, mark: Buffer): AsyncGenerator<Buffer> {
  let head: Buffer | null = Buffer.alloc(0);
  for await (const chunk of bytes) {
    if (head === null) {
      yield chunk;
      continue;
    }
    head = Buffer.concat([head, chunk]);
    if (head.length < mark.length) continue;
    const hasOwn = /^(?:fffe|feff)/.test(head.toString('hex', 0, mark.length));
    yield hasOwn ? head : Buffer.concat([mark, head]);
    head = null;
  }
  if (head !== null && head.length > 0) yield head;
}

/** The media type of a body and its charset, in lower case; '' if it names none. */
interface MediaType {
  type: string;
  charset: string;
}

/** Refuses a type that is not in `types`, other charsets than `allowed`, and content codings. */
function mediaType(
  req: IncomingMessage,
  types: readonly string[],
  allowed: keyof typeof ALLOWED_CHARSETS,
): MediaType | Refusal {
  const [type = '', ...parameters] = (req.headers['content-type'] ?? '').toLowerCase().split(';');
  if (!types.includes(type.trim())) {
    return refuse('UNSUPPORTED_MEDIA_TYPE', `The body must be sent as Content-Type: ${types.join(' or ')}`);
  }
  const parameter = parameters.map((part) => part.trim()).find((part) => part.startsWith('charset='));
  const charset = parameter?.slice('charset='.length).replace(/^"(.*)"$/, '$1') ?? '';
  if (parameter !== undefined && !ALLOWED_CHARSETS[allowed].test(charset)) {
    return refuse('UNSUPPORTED_MEDIA_TYPE', `The body must be sent as ${allowed}`);
  }
  const coding = req.headers['content-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'identity') {
    return refuse('UNSUPPORTED_MEDIA_TYPE', 'The body must be sent without Content-Encoding');
  }
  return { type: type.trim(), charset };
}
