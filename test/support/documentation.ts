/*
 * Code blocks of the documents in docs/. A block of shell commands (`sh`) runs, TOML is checked as a configuration, JSON
 * is parsed, unless an HTML comment on the line before the block states something else:
 *
 *   <!-- not run: needs a public address -->     why nothing runs the block
 *   <!-- file send.py -->                        the block is the content of this file, which later commands use
 *   <!-- append config/postrider.toml -->        the block is added to the end of this file
 *   <!-- exit 3: no public address -->           the commands exit with this status in a test, and why
 *   <!-- run by test/e2e/scaling.long.test.ts -->     this test runs the block
 */
export type CodeBlock = {
  /** Line of the opening fence. */ line: number;
  language: string;
  text: string;
} & Purpose;

type Purpose =
  /** `exit`: the expected status; for another than 0 `reason` states why. */
  | { kind: 'command'; exit: number; reason: string }
  | { kind: 'file'; path: string }
  | { kind: 'append'; path: string }
  | { kind: 'configuration' }
  | { kind: 'json' }
  | { kind: 'run by'; test: string }
  | { kind: 'not run'; reason: string };

/** Throws for a block whose purpose follows neither from its language nor from a comment. */
export function codeBlocks(markdown: string): CodeBlock[] {
  const lines = markdown.split('\n');
  const blocks: CodeBlock[] = [];
  for (let at = 0; at < lines.length; at++) {
    const [, indent, language] = /^( *)```(\w*)$/.exec(lines[at] ?? '') ?? [];
    if (indent === undefined || language === undefined) continue;
    const end = lines.indexOf(`${indent}\`\`\``, at + 1);
    if (end === -1) throw new Error(`line ${at + 1}: the code block has no end`);
    const content = lines.slice(at + 1, end).map((line) => line.slice(indent.length));
    const block = { line: at + 1, language, text: `${content.join('\n')}\n` };
    blocks.push({ ...block, ...purposeOf((lines[at - 1] ?? '').trim(), block) });
    at = end;
  }
  return blocks;
}

function purposeOf(comment: string, { line, language }: { line: number; language: string }): Purpose {
  for (const [pattern, purpose] of COMMENTS) {
    const [match, first = '', second = ''] = pattern.exec(comment) ?? [];
    if (match !== undefined) return purpose(first, second);
  }
  if (language === 'sh') return { kind: 'command', exit: 0, reason: '' };
  if (language === 'toml') return { kind: 'configuration' };
  if (language === 'json') return { kind: 'json' };
  throw new Error(`line ${line}: the block needs a comment: a file name, or the reason why it is not run`);
}

const COMMENTS: [RegExp, (first: string, second: string) => Purpose][] = [
  [/^<!-- not run: (.+) -->$/, (reason) => ({ kind: 'not run', reason })],
  [/^<!-- file (.+) -->$/, (path) => ({ kind: 'file', path })],
  [/^<!-- append (.+) -->$/, (path) => ({ kind: 'append', path })],
  [/^<!-- run by (\S+) -->$/, (test) => ({ kind: 'run by', test })],
  [/^<!-- exit (\d+): (.+) -->$/, (status, reason) => ({ kind: 'command', exit: Number(status), reason })],
];
