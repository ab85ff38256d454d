import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * Which of the foreign programs that an end-to-end test needs are not on this machine. On somebody's own
 * machine such a test is skipped and says why; in CI (`CI` is set) a missing part is a failure, so that a
 * test cannot go missing with it.
 *
 *     const parts = needParts('knot', 'postfix');
 *     describe.skipIf(parts.missing)(`the main job${parts.reason}`, () => { … });
 */
export type Part =
  | 'knot'
  | 'postfix'
  | 'dkimpy'
  | 'pyspf'
  | 'chromium'
  | 'swaks'
  | 'pebble'
  | 'curl'
  | 'spamassassin'
  | 'rspamd';

export interface Parts {
  missing: boolean;
  /** ` [skipped: …]` for the line of the test, '' when nothing is missing. */
  reason: string;
}

/** Debian's Python sees Debian's modules; another one earlier in the path may not. */
export const PYTHON = '/usr/bin/python3';

const ADMIN_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

/** Throws in CI when anything is missing. */
export function needParts(...parts: Part[]): Parts {
  return withoutFaults(parts.flatMap((part) => FAULTS[part]() ?? []));
}

/** The same for faults that somebody else found. */
export function withoutFaults(faults: string[]): Parts {
  if (faults.length === 0) return { missing: false, reason: '' };
  const why = faults.join('; ');
  if (process.env['CI']) throw new Error(`this test must run here, but ${why}`);
  console.log(`skipped: ${why}`);
  return { missing: true, reason: ` [skipped: ${why}]` };
}

/** The path of a program, also of one that only administrators have in their PATH; null when there is none. */
export function findProgram(name: string): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), ...ADMIN_FOLDERS];
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file)) ?? null;
}

/** Debian's Chromium, or Chrome. */
export function findBrowser(): string | null {
  return findProgram('chromium') ?? findProgram('google-chrome');
}

const FAULTS: Record<Part, () => string | null> = {
  knot: () => programs('Knot DNS (package knot)', ['knotd', 'knotc']),
  postfix: () =>
    programs('Postfix (package postfix)', ['postfix', 'postconf']) ??
    (process.getuid?.() === 0 ? null : 'Postfix can be started by root only'),
  dkimpy: () => pythonModules('dkimpy (package python3-dkim)', ['dkim', 'dns']),
  chromium: () => (findBrowser() === null ? 'Chromium (package chromium) is not installed' : null),
  pebble: () => programs('Pebble (package pebble)', ['pebble']),
  swaks: () => programs('swaks (package swaks)', ['swaks']),
  curl: () => programs('curl', ['curl']),
  spamassassin: () => programs('SpamAssassin (package spamassassin)', ['spamassassin']),
  rspamd: () => programs('Rspamd (package rspamd)', ['rspamd']),
  pyspf: () => pythonModules('pyspf (packages python3-spf, python3-dnspython)', ['spf', 'dns']),
};

function programs(title: string, names: string[]): string | null {
  return names.every((name) => findProgram(name) !== null) ? null : `${title} is not installed`;
}

function pythonModules(title: string, modules: string[]): string | null {
  try {
    execFileSync(PYTHON, ['-c', `import ${modules.join(', ')}`], { stdio: 'ignore' });
    return null;
  } catch {
    // No such Python, or it does not know the module: either way the part is not there.
    return `${title} is not installed`;
  }
}
