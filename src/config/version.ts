import { readFileSync } from 'node:fs';

/** The program's version, from package.json, which is two levels above this file in both src and dist. */
export function programVersion(): string {
  const file: { version: string } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return file.version;
}
