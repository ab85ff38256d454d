import { readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { fileFault, OperatorFault } from '../core/operator-fault.ts';

/*
 * Files that a person specifies on the command line. `option`: the option with the file, null for an argument. Failures are
 * OperatorFaults that state the option, the file and the remedy.
 */

/** The content of a text file. Throws OperatorFault. */
export function readTextFile(option: string | null, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw fileFault(option, file, error);
  }
}

/** Rejects with OperatorFault unless the file can be opened for reading and is not a directory. */
export async function requireReadable(option: string | null, file: string): Promise<void> {
  try {
    const handle = await open(file, 'r');
    try {
      if ((await handle.stat()).isDirectory())
        throw Object.assign(new Error('is a directory'), { code: 'EISDIR' });
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw fileFault(option, file, error);
  }
}

/** The content of a JSON file. Throws OperatorFault. */
export function readJsonFile(option: string, file: string): unknown {
  try {
    return JSON.parse(readTextFile(option, file));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new OperatorFault(`${option}: ${file} is not JSON: ${error.message}`);
  }
}
