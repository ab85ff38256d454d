import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { startInProcess } from '../../support/in-process-daemon.ts';

/**
 * Writes the pages of the API reference, as a daemon serves them, and the OpenAPI document to dist/docs/, or to the directory of the
 * first argument.
 */
const directory = pathToFileURL(`${resolve(process.argv[2] ?? 'dist/docs')}/`);
const daemon = await startInProcess();
const read = async (path: string) => (await fetch(`${daemon.url}${path}`)).text();
const overview = await read('/docs');
const subjects = new Set([...overview.matchAll(/"\/docs\/([a-z-]+)/g)].map(([, subject = '']) => subject));
mkdirSync(directory, { recursive: true });
write('index.html', overview);
for (const subject of subjects) write(`${subject}.html`, await read(`/docs/${subject}`));
write('openapi.json', await read('/openapi.json'));
await daemon.stop();

/** Writes a page with links between files. */
function write(name: string, page: string): void {
  const text = page
    .replaceAll(/"\/docs\/([a-z-]+)/g, '"$1.html')
    .replaceAll(/"\/docs(?=["#])/g, '"index.html')
    .replaceAll('"/openapi.json"', '"openapi.json"');
  writeFileSync(new URL(name, directory), text);
}
