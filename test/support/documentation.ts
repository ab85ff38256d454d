/*
 * Code blocks of the documents in docs/. A block of shell commands runs, unless an HTML comment on the line before it
 * states why not:
 *
 *   <!-- not run: needs a public address -->
 *   <!-- file send.py -->                        the block is the content of this file, which later commands use
 */
export type CodeBlock = {
  /** Line of the opening fence. */
  line: number;
  language: string;
  text: string;
} & ({ kind: 'command' } | { kind: 'file'; path: string } | { kind: 'not run'; reason: string });

/** Throws for a block that is neither shell, nor a file, nor marked with a reason. */
export function codeBlocks(markdown: string): CodeBlock[] {
  const lines = markdown.split('\n');
  const blocks: CodeBlock[] = [];
  for (let at = 0; at < lines.length; at++) {
    const language = /^```(\w*)$/.exec(lines[at] ?? '')?.[1];
    if (language === undefined) continue;
    const end = lines.indexOf('```', at + 1);
    if (end === -1) throw new Error(`line ${at + 1}: the code block has no end`);
    const block = { line: at + 1, language, text: `${lines.slice(at + 1, end).join('\n')}\n` };
    blocks.push({ ...block, ...purposeOf(lines[at - 1] ?? '', block) });
    at = end;
  }
  return blocks;
}

type Purpose = { kind: 'command' } | { kind: 'file'; path: string } | { kind: 'not run'; reason: string };

function purposeOf(comment: string, { line, language }: { line: number; language: string }): Purpose {
  const [, name, value] = /^<!-- (file|not run:) (.+) -->$/.exec(comment) ?? [];
  if (value !== undefined)
    return name === 'file' ? { kind: 'file', path: value } : { kind: 'not run', reason: value };
  if (language === 'sh') return { kind: 'command' };
  throw new Error(`line ${line}: the block needs a comment: a file name, or the reason why it is not run`);
}
