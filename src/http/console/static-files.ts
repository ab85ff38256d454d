import { hash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { extname, join, posix, sep } from 'node:path';
import { refuse } from '../../core/refusal.ts';
import { refusalResponse } from '../responses.ts';
import type { HttpResponse } from '../route.ts';
import { acceptsCoding, matchesTag } from '../static-page.ts';

/**
 * The files of the application, as the build wrote them to `dist/console`: names with a hash in `assets/`, which browsers
 * store for a year, and compressed copies (`.br`, `.gz`). Every other path is the application's own, and answered with
 * `index.html`. Files are read on first use and stay in memory; the list is read once, so that no request names a file
 * outside of it.
 */
export interface StaticFiles {
  /** `path`: below `/console/`, as sent. */
  serve(path: string, headers: IncomingHttpHeaders, requestId: string): Promise<HttpResponse>;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.json': 'application/json; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
};
const INDEX = 'index.html';
const ASSETS = 'assets/';
const IMMUTABLE = 'public, max-age=31536000, immutable';

interface StoredFile {
  body: Buffer;
  etag: string;
}

async function readStored(file: string): Promise<StoredFile> {
  const body = await readFile(file);
  return { body, etag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"` };
}

/**
 * Reads the list of files now, synchronously; without the directory every request is answered with 404. `serve` rejects
 * when a file of the list cannot be read; the next request reads it again.
 */
export function createStaticFiles(directory: string): StaticFiles {
  const names = new Set(filesIn(directory));
  const contents = new Map<string, Promise<StoredFile>>();
  const read = (name: string): Promise<StoredFile> => {
    const known = contents.get(name);
    if (known !== undefined) return known;
    const content = readStored(join(directory, name)).catch((error: unknown) => {
      contents.delete(name);
      throw error;
    });
    contents.set(name, content);
    return content;
  };

  return {
    serve: async (path, headers, requestId) => {
      const isFile = names.has(path) && TYPES[extname(path)] !== undefined;
      if (!isFile && (path.startsWith(ASSETS) || !names.has(INDEX)))
        return refusalResponse(
          refuse(
            'NOT_FOUND',
            names.has(INDEX) ? 'This file does not exist' : 'The console is not part of this build',
          ),
          requestId,
        );
      const name = isFile ? path : INDEX;
      const [stored, coding] =
        names.has(`${name}.br`) && acceptsCoding(headers['accept-encoding'], 'br')
          ? [`${name}.br`, 'br']
          : names.has(`${name}.gz`) && acceptsCoding(headers['accept-encoding'], 'gzip')
            ? [`${name}.gz`, 'gzip']
            : [name, null];
      const { body, etag } = await read(stored);
      const common = {
        ETag: etag,
        Vary: 'Accept-Encoding',
        'Cache-Control': name === INDEX ? 'no-store' : name.startsWith(ASSETS) ? IMMUTABLE : 'no-cache',
      };
      if (matchesTag(headers['if-none-match'], etag))
        return { status: 304, contentType: '', body: '', headers: common };
      return {
        status: 200,
        contentType: TYPES[extname(name)] ?? '',
        body,
        headers: { ...common, ...(coding === null ? {} : { 'Content-Encoding': coding }) },
      };
    },
  };
}

/** The paths of all files below a directory, with slashes; empty if there is no such directory. */
function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory, { recursive: true, encoding: 'utf8' }).map((name) =>
      name.split(sep).join(posix.sep),
    );
  } catch {
    // A build without the application: every request is answered with 404.
    return [];
  }
}
