/*
 * Files of other programs: UTF-16 with a byte order mark is decoded, and CR as the only line end becomes LF, so that the
 * reader of records knows UTF-8 and LF only. Positions count the bytes after that.
 */

/** How the text of a file is written. */
interface TextForm {
  encoding: 'utf-8' | 'utf-16le' | 'utf-16be';
  /** Lines end with CR alone. */
  hasCr: boolean;
}

const CR = 0x0d;
const LF = 0x0a;
/** Bytes in which the first line end is searched. */
const MAX_HEAD = 256 * 1024;

/** The same text in UTF-8 with lines that end with LF, from `start` on, which counts in the result. */
export async function* plainText(
  bytes: AsyncIterable<Buffer>,
  openAt?: { start: number; reopen(start: number): AsyncIterable<Buffer> },
): AsyncGenerator<Buffer> {
  const iterator = bytes[Symbol.asyncIterator]();
  try {
    const { head, form, isLast } = await readHead(iterator);
    const start = openAt?.start ?? 0;
    if (openAt !== undefined && start > 0 && form.encoding === 'utf-8') {
      for await (const chunk of openAt.reopen(start)) yield withLf(chunk, form);
      return;
    }
    let skip = start;
    for await (const chunk of decoded(head, isLast ? null : iterator, form)) {
      const rest = chunk.subarray(Math.min(skip, chunk.length));
      skip -= chunk.length - rest.length;
      if (rest.length > 0) yield withLf(rest, form);
    }
  } finally {
    await iterator.return?.();
  }
}

async function readHead(
  iterator: AsyncIterator<Buffer>,
): Promise<{ head: Buffer; form: TextForm; isLast: boolean }> {
  let head: Buffer = Buffer.alloc(0);
  for (;;) {
    const { value, done } = await iterator.next();
    const isLast = done === true;
    if (!isLast) head = Buffer.concat([head, value]);
    const form = formOf(head);
    // Whether a CR at the end is followed by LF is not known yet.
    if (form !== null || isLast || head.length > MAX_HEAD)
      return { head, form: form ?? { encoding: encodingOf(head), hasCr: endsWithCr(head) }, isLast };
  }
}

/** Null: there is no complete line end yet. */
function formOf(head: Buffer): TextForm | null {
  if (head.length < 4) return null;
  const encoding = encodingOf(head);
  const width = encoding === 'utf-8' ? 1 : 2;
  const offset = encoding === 'utf-16be' ? 1 : 0;
  for (let at = offset; at < head.length; at += width) {
    if (width === 2 && head[at + (offset === 1 ? -1 : 1)] !== 0) continue;
    if (head[at] === LF) return { encoding, hasCr: false };
    if (head[at] !== CR) continue;
    const next = at + width;
    if (next + (width - 1 - offset) >= head.length) return null;
    return { encoding, hasCr: head[next] !== LF };
  }
  return null;
}

function endsWithCr(head: Buffer): boolean {
  return head.includes(CR) && !head.includes(LF);
}

function encodingOf(head: Buffer): TextForm['encoding'] {
  if (head[0] === 0xff && head[1] === 0xfe) return 'utf-16le';
  return head[0] === 0xfe && head[1] === 0xff ? 'utf-16be' : 'utf-8';
}

async function* decoded(
  head: Buffer,
  iterator: AsyncIterator<Buffer> | null,
  { encoding }: TextForm,
): AsyncGenerator<Buffer> {
  const decoder = encoding === 'utf-8' ? null : new TextDecoder(encoding);
  yield decoder === null ? head : Buffer.from(decoder.decode(head, { stream: true }));
  for (
    let next = await iterator?.next();
    next !== undefined && next.done !== true;
    next = await iterator?.next()
  )
    yield decoder === null ? next.value : Buffer.from(decoder.decode(next.value, { stream: true }));
  if (decoder !== null) yield Buffer.from(decoder.decode());
}

/** Of the same length. */
function withLf(chunk: Buffer, { hasCr }: TextForm): Buffer {
  if (!hasCr || !chunk.includes(CR)) return chunk;
  const copy = Buffer.from(chunk);
  for (let at = copy.indexOf(CR); at !== -1; at = copy.indexOf(CR, at + 1)) copy[at] = LF;
  return copy;
}
