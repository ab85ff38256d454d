import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The directory of the program: two levels above this file in both src and dist. */
const DIRECTORY = fileURLToPath(new URL('../../', import.meta.url));

/**
 * How a person calls this program: `postrider` if it is installed; from a clone `npx postrider`, which works in its directory
 * only, elsewhere the program's file.
 */
export function programName(cwd = process.cwd(), directory = DIRECTORY): string {
  // Packages do not contain this file.
  if (!existsSync(join(directory, 'package-lock.json'))) return 'postrider';
  return relative(directory, cwd).startsWith('..')
    ? `node ${quoted(join(directory, 'dist/main.js'))}`
    : 'npx postrider';
}

/** A word of a shell command. */
export function quoted(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
