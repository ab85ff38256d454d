import { createHash, timingSafeEqual } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import { createGunzip } from 'node:zlib';
import type * as z from 'zod';
import { fileFault, OperatorFault } from '../core/operator-fault.ts';
import { mac } from '../core/seal.ts';
import { ACCOUNT_KEY_LENGTH } from '../mail/tokens.ts';
import { formatBytes } from '../store/migrate/upgrade.ts';
import { TRANSFER_TYPES, type TransferType } from '../store/transfer/kinds.ts';
import {
  changedSchema,
  endSchema,
  type FileContext,
  type FileSeal,
  FORMAT,
  fileSeal,
  type Header,
  headerSchema,
  MAX_LINE_BYTES,
  macKey,
  totalOf,
  VERSION,
} from './format.ts';
import { RECORD_SCHEMAS, type TypedRecord } from './records.ts';
import { tokenKeySealContext } from './token-accounts.ts';

/** The file of an exported account, which can be read repeatedly. The caller closes it. */
export interface AccountFile {
  header: Header;
  seal: FileSeal;
  /** The key of the account's tokens. */
  tokenKey: Buffer;
  /**
   * Reads all records in portions. Each record has been validated; whether the file is complete and unchanged is known after
   * the last one. Throws OperatorFault. `onProgress`: bytes of the file.
   */
  records(onProgress?: (done: number, total: number) => void): AsyncGenerator<FileItem[], FileDigest>;
  close(): Promise<void>;
}

/** A record, or keys whose records a difference replaces. */
export type FileItem = TypedRecord | Changed;
export interface Changed {
  type: 'changed';
  record: z.output<typeof changedSchema>;
}

export interface FileDigest {
  sha256: string;
}

/** The file is damaged, invalid or not an exported account; nothing was imported from it. */
export class FileFault extends OperatorFault {}

/** gzip compresses records to about a twentieth; a higher ratio than this indicates an attempt to exhaust the disk. */
const MAX_RATIO = 250;
/** Below this size the ratio does not matter. */
const MIN_RATIO_BYTES = 64 * 2 ** 20;
const CHUNK_BYTES = 64 * 1024;
const LF = 0x0a;

/** Throws OperatorFault when the file cannot be read, is not an exported account, or the passphrase is wrong. */
export async function openAccountFile(
  name: string,
  passphrase: string,
  deps: FileContext,
): Promise<AccountFile> {
  const handle = await openRegular(name);
  try {
    const { size } = await handle.stat();
    const first = lines(handle, name, size);
    const line = (await first.next()).value?.[0];
    await first.return(undefined);
    const header = parseHeader(name, line);
    const seal = await fileSeal(passphrase, header.kdf, deps);
    const tokenKey = openTokenKey(name, header, seal);
    return {
      header,
      seal,
      tokenKey,
      records: (onProgress) => records(handle, { name, size, header, seal }, onProgress),
      close: () => handle.close(),
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function openRegular(name: string): Promise<FileHandle> {
  let handle: FileHandle;
  try {
    handle = await open(name, 'r');
  } catch (error) {
    throw fileFault(null, name, error);
  }
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  throw new OperatorFault(`${name} is not a regular file: an import reads it twice`);
}

function parseHeader(name: string, line: Buffer | undefined): Header {
  const value = line === undefined ? null : parseJson(name, line, 1);
  if (typeof value !== 'object' || value === null || !('format' in value) || value.format !== FORMAT)
    throw new FileFault(`${name} is not an exported account`);
  if ('version' in value && typeof value.version === 'number' && value.version > VERSION)
    throw new FileFault(`${name} was written by a newer version of postrider: import it with that version`);
  return checked(headerSchema, value, `the header of ${name}`);
}

function openTokenKey(name: string, header: Header, seal: FileSeal): Buffer {
  let key: Buffer;
  try {
    key = seal.open(Buffer.from(header.tokenKey, 'base64'), tokenKeySealContext(header.accountId));
  } catch {
    // The key of the seal differs: the tag of AES-GCM does not match.
    throw new FileFault(`The passphrase does not match ${name}`);
  }
  if (key.length === 0 || key.length % ACCOUNT_KEY_LENGTH !== 0)
    throw new FileFault(`${name} is damaged: a key of the tokens must have ${ACCOUNT_KEY_LENGTH} bytes`);
  return key;
}

interface Source {
  name: string;
  size: number;
  header: Header;
  seal: FileSeal;
}

async function* records(
  handle: FileHandle,
  { name, size, header, seal }: Source,
  onProgress?: (done: number, total: number) => void,
): AsyncGenerator<FileItem[], FileDigest> {
  const digest = createHash('sha256');
  const remaining = new Map<TransferType, number>(TRANSFER_TYPES.map((type) => [type, header.counts[type]]));
  let position = -1;
  let number = 0;
  let end: FileDigest | null = null;
  for await (const portion of lines(handle, name, size, onProgress)) {
    const found: FileItem[] = [];
    for (const line of portion) {
      number++;
      if (end !== null) throw new FileFault(`${name} is damaged: line ${number} follows the end`);
      const value = parseJson(name, line, number);
      if (number === 1) {
        // The header was read when the file was opened.
        if (!isDeepStrictEqual(headerSchema.safeParse(value).data, header))
          throw new FileFault(`${name} was changed while it was read`);
      } else if ('end' in value) {
        const missing = TRANSFER_TYPES.find((type) => remaining.get(type) !== 0);
        if (missing !== undefined)
          throw new FileFault(
            `${name} is damaged: it has fewer records of type ${missing} than its header states`,
          );
        end = verifiedEnd(name, value, digest.copy().digest(), { seal, records: totalOf(header.counts) });
      } else {
        const item = parseItem(name, value, number);
        const at = item.type === 'changed' ? -1 : TRANSFER_TYPES.indexOf(item.type);
        if (at < position || (at < 0 && header.part !== 'difference'))
          throw new FileFault(`${name}: line ${number}: ${item.type} is out of order`);
        position = at;
        found.push(item);
        if (item.type !== 'changed') {
          const rest = (remaining.get(item.type) ?? 0) - 1;
          if (rest < 0)
            throw new FileFault(
              `${name}: line ${number}: there are more records of type ${item.type} than the header states`,
            );
          remaining.set(item.type, rest);
        }
      }
      digest.update(line);
    }
    if (found.length > 0) yield found;
  }
  if (end === null) throw new FileFault(`${name} is not complete: its end is missing`);
  return end;
}

function verifiedEnd(
  name: string,
  value: object,
  sha256: Buffer,
  { seal, records: total }: { seal: FileSeal; records: number },
): FileDigest {
  const end = checked(endSchema, value, `the end of ${name}`);
  if (end.sha256 !== sha256.toString('hex'))
    throw new FileFault(`${name} is damaged: its checksum does not match`);
  if (!timingSafeEqual(Buffer.from(end.mac, 'hex'), mac(macKey(seal), sha256)))
    throw new FileFault(`${name} was changed after it was written: its MAC does not match`);
  if (end.records !== total)
    throw new FileFault(`${name} is damaged: it has ${total} records, and states ${end.records}`);
  return { sha256: end.sha256 };
}

function parseItem(name: string, value: object, number: number): FileItem {
  const { type, record, ...rest }: { type?: unknown; record?: unknown } = value;
  if (type === 'changed' && Object.keys(rest).length === 0)
    return { type, record: checked(changedSchema, record, `${name}: line ${number} (changed)`) };
  const known = TRANSFER_TYPES.find((each) => each === type);
  if (known === undefined)
    throw new FileFault(
      `${name}: line ${number} has the unknown type ${JSON.stringify(type)?.slice(0, 100)}`,
    );
  if (Object.keys(rest).length > 0) throw new FileFault(`${name}: line ${number} has unknown fields`);
  const parsed = checked<z.ZodType>(RECORD_SCHEMAS[known], record, `${name}: line ${number} (${known})`);
  return { type: known, record: parsed } as TypedRecord; // parsed with the schema of its type
}

function checked<Schema extends z.ZodType>(schema: Schema, value: unknown, where: string): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const path = issue?.path.join('.') ?? '';
  throw new FileFault(`${where}: ${path === '' ? '' : `${path}: `}${issue?.message ?? 'invalid'}`);
}

function parseJson(name: string, line: Buffer, number: number): object {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(line));
  } catch {
    // Not UTF-8 or not JSON.
    value = null;
  }
  if (typeof value === 'object' && value !== null) return value;
  throw new FileFault(`${name} is damaged: line ${number} is not a JSON object`);
}

/** Reads the file from its beginning. */
async function* chunks(handle: FileHandle, progress: { bytesRead: number }): AsyncGenerator<Buffer> {
  for (;;) {
    const { buffer, bytesRead } = await handle.read(
      Buffer.allocUnsafe(CHUNK_BYTES),
      0,
      CHUNK_BYTES,
      progress.bytesRead,
    );
    if (bytesRead === 0) return;
    progress.bytesRead += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** The lines of the file with their ends, in portions. */
async function* lines(
  handle: FileHandle,
  name: string,
  size: number,
  onProgress?: (done: number, total: number) => void,
): AsyncGenerator<Buffer[]> {
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  const progress = { bytesRead: 0 };
  const file = Readable.from(chunks(handle, progress), { objectMode: false });
  file.on('error', (error) => gunzip.destroy(error));
  file.pipe(gunzip);
  let rest: Buffer[] = [];
  let restBytes = 0;
  let total = 0;
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      total += chunk.length;
      if (total > MIN_RATIO_BYTES && total > MAX_RATIO * Math.max(1, progress.bytesRead))
        throw new FileFault(
          `${name} is compressed more than ${MAX_RATIO} times: it is not an exported account`,
        );
      onProgress?.(progress.bytesRead, size);
      const complete: Buffer[] = [];
      let from = 0;
      for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, from)) {
        complete.push(Buffer.concat([...rest, chunk.subarray(from, at + 1)]));
        rest = [];
        restBytes = 0;
        from = at + 1;
      }
      rest.push(chunk.subarray(from));
      restBytes += chunk.length - from;
      if (restBytes > MAX_LINE_BYTES)
        throw new FileFault(`${name} has a line that is longer than ${formatBytes(MAX_LINE_BYTES)}`);
      if (complete.length > 0) yield complete;
    }
  } catch (error) {
    if (error instanceof OperatorFault) throw error;
    throw new FileFault(`${name} is damaged: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  } finally {
    file.destroy();
    gunzip.destroy();
  }
  if (restBytes > 0) throw new FileFault(`${name} is damaged: its last line is not complete`);
}
