/** A release number: numbers without leading zeros (semver.org, 2), and a pre-release such as `-rc.1`. */
const VERSION = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-[0-9a-z.]+)?$/;

/** Why `next` cannot follow `current`; null: it can. */
export function versionFault(current: string, next: string): string | null {
  const numbers = VERSION.exec(next)?.slice(1, 4).map(Number);
  if (numbers === undefined) return `"${next}" is not a version such as 0.3.0`;
  const before = VERSION.exec(current)?.slice(1, 4).map(Number) ?? [];
  const difference =
    numbers.map((number, n) => number - (before[n] ?? 0)).find((change) => change !== 0) ?? 0;
  const isFinalOfPreRelease = difference === 0 && current.startsWith(`${next}-`);
  return difference > 0 || isFinalOfPreRelease ? null : `${next} does not follow ${current}`;
}

const UNRELEASED = '\n## Unreleased\n';

/**
 * The changelog with what is unreleased under the new version, and an empty section for what follows. `section`: what
 * the version changes, for the message of its tag.
 */
export function releasedChangelog(
  text: string,
  version: string,
  date: string,
): { text: string; section: string } | { fault: string } {
  const start = text.indexOf(UNRELEASED);
  if (start === -1) return { fault: 'CHANGELOG.md has no section "Unreleased"' };
  const from = start + UNRELEASED.length;
  const next = text.indexOf('\n## ', from);
  const section = text.slice(from, next === -1 ? undefined : next).trim();
  if (section === '') return { fault: 'CHANGELOG.md names no change under "Unreleased"' };
  const heading = `${UNRELEASED}\n## ${version} - ${date}\n\n`;
  return {
    section,
    text: `${text.slice(0, start)}${heading}${section}\n${next === -1 ? '' : text.slice(next)}`,
  };
}

/** The names of packages and images in a document, with the new version. */
export function namesOfVersion(text: string, current: string, next: string): string {
  const [installed, packaged] = [current.replace('-', '~'), next.replace('-', '~')];
  return text
    .replaceAll(`postrider_${installed}_`, `postrider_${packaged}_`)
    .replaceAll(`VERSION=${installed} `, `VERSION=${packaged} `)
    .replaceAll(`postrider:${current}`, `postrider:${next}`)
    .replaceAll(`postrider-${current}-`, `postrider-${next}-`);
}
