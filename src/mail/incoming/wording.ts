import { readProgramFile } from '../../config/program-file.ts';
import type { SmtpPhase } from '../reply.ts';

/**
 * The wording of reports and automatic replies that are written for people (`config/notices.toml`), phrases in lower case. Sound:
 * the file is a part of the program, and a test checks its form.
 */
export const WORDING = readProgramFile('notices.toml') as {
  systemSenders: string[];
  failureSubjects: string[];
  failurePhrases: string[];
  delayPhrases: string[];
  autoReplyFields: string[];
  announcements: string[];
  announcementPrefixes: string[];
  /** The phrases by which servers name the command that a reply answers, the most reliable first. */
  command: { phase: SmtpPhase; phrases: string[] }[];
};
