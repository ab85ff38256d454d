import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse as parseToml } from 'smol-toml';
import type { ReplyMeaning } from './reply-rules.ts';

/*
 * The rules of the program for the replies of large providers (`config/replies.toml`), in the form of `delivery.replies`.
 * Threads read them, too: no schema is loaded for them. A test validates the file with the schema of `delivery.replies`.
 */

/** A rule as the file has it. */
export interface ProgramReplyRule {
  match?: string | string[];
  code?: number | number[];
  enhanced?: string | string[];
  mx?: string | string[];
  phase?: string | string[];
  meaning: ReplyMeaning;
  example: { reply: string; phase?: string; mx?: string };
}

export const REPLIES_FILE = fileURLToPath(new URL('../../config/replies.toml', import.meta.url));

/** Reads the rules. Throws an Error that names the file when it cannot be read. */
export function readProgramReplies(file = REPLIES_FILE): ProgramReplyRule[] {
  try {
    // Sound: the file is a part of the program, and a test compares it with the schema.
    return (parseToml(readFileSync(file, 'utf8')) as unknown as { rule: ProgramReplyRule[] }).rule;
  } catch (error) {
    throw new Error(`the reply rules of the program in ${file} cannot be read`, { cause: error });
  }
}
