// Rejects regular expressions whose time grows faster than their input: one long input would stop the event loop, or the
// thread that reads mail. An expression whose input is always short is marked by a comment that states why, on its line or one
// of the three lines above: `// Not linear: a host name has at most 253 characters.` Only literals are examined, not `new RegExp`.
// `node .ci/check-patterns.mjs [FILE ...]`
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { check } from './tools.mjs';

const MARK = 'Not linear:';
/** With fewer expressions the check itself is broken: it did not find those of the program. */
const MIN_EXPRESSIONS = 100;
const LINES_ABOVE = 3;
/** More than any expression needs, also on a busy machine. */
const TIMEOUT_MS = 120_000;

const named = process.argv.slice(2);
const files =
  named.length > 0
    ? named
    : readdirSync('src', { recursive: true })
        .filter((name) => /\.tsx?$/.test(name))
        .map((name) => join('src', name));

/** The lines with each literal, by its text. */
const found = new Map();
for (const file of files) {
  const source = readFileSync(file, 'utf8');
  const lines = source.split('\n');
  const literals = new Set();
  const { program, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  collect(program, literals);
  for (const literal of literals) {
    const places = found.get(literal) ?? [];
    found.set(literal, places);
    places.push(...placesOf(literal, file, lines));
  }
}

const faults = [];
let checked = 0;
const unmarked = [...found].filter(([, places]) => places.some(({ isMarked }) => !isMarked));
// One by one: a busy machine must not make an expression exceed the timeout.
for (const [literal, places] of unmarked) {
  const end = literal.lastIndexOf('/');
  const { status, attack, error } = await check(literal.slice(1, end), literal.slice(end + 1), {
    timeout: TIMEOUT_MS,
  });
  checked++;
  if (status === 'safe') continue;
  const reason =
    status === 'vulnerable' ? `not linear, for example for ${attack.pattern}` : `not examined: ${error.kind}`;
  for (const { file, line, isMarked } of places) if (!isMarked) faults.push(`${file}:${line}: ${reason}`);
}
for (const fault of faults) console.error(fault);
if (named.length === 0 && checked < MIN_EXPRESSIONS) {
  console.error(
    `Only ${checked} expressions were examined, fewer than ${MIN_EXPRESSIONS}: the check itself is broken`,
  );
  process.exit(1);
}
console.log(`patterns: ${checked} expressions, ${faults.length} that are not linear`);
// The process of the checker would keep this one alive.
process.exit(faults.length > 0 ? 1 : 0);

/** Adds the regular expressions of a syntax tree. */
function collect(node, literals) {
  if (node === null || typeof node !== 'object') return;
  if (node.type === 'Literal' && node.regex) literals.add(node.raw);
  for (const value of Object.values(node)) collect(value, literals);
}

/** The lines on which the literal begins, and whether a comment above states why it may be used. */
function placesOf(literal, file, lines) {
  return lines.flatMap((text, index) =>
    text.includes(literal)
      ? [
          {
            file,
            line: index + 1,
            isMarked: lines
              .slice(Math.max(0, index - LINES_ABOVE), index + 1)
              .some((line) => line.includes(MARK)),
          },
        ]
      : [],
  );
}
