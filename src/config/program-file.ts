import { readFileSync } from 'node:fs';
import { parse as parseToml } from 'smol-toml';

/**
 * Reads a TOML file of the program in its directory `config`. Threads do so, too, so that no schema is loaded: a test checks the
 * form of each file. Throws an Error that names the file when it cannot be read.
 */
export function readProgramFile(name: string): unknown {
  const file = new URL(`../../config/${name}`, import.meta.url);
  try {
    return parseToml(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Error(`the file of the program ${file.pathname} cannot be read`, { cause: error });
  }
}
