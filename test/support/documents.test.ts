import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type CodeBlock, codeBlocks } from './documentation.ts';
import { DOCUMENTS } from './documents.ts';

/*
 * Each block of a document is run by a test, or states why not. The API reference is generated from the schemas that
 * validate requests, and its examples are checked with those.
 */
const ROOT = new URL('../../', import.meta.url).pathname;
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const documents = [
  'README.md',
  ...['docs', 'docs/reference'].flatMap((folder) =>
    readdirSync(join(ROOT, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`),
  ),
];
const listed: readonly string[] = Object.values(DOCUMENTS).flat();
const isRun = ({ kind }: CodeBlock) => kind !== 'not run' && kind !== 'run by';

describe('documents', () => {
  it.each(documents)('%s: a test runs its blocks', (document) => {
    const blocks = codeBlocks(read(document));
    if (blocks.some(isRun)) expect(listed).toContain(document);
    for (const block of blocks) {
      if (block.kind === 'run by') {
        expect(read(block.test), `${block.test} names the document whose blocks it runs`).toContain(document);
      }
    }
  });

  it('are each in one list, and exist', () => {
    expect(listed).toEqual([...new Set(listed)]);
    expect(listed.filter((document) => !documents.includes(document))).toEqual([]);
  });

  it.each(Object.entries(DOCUMENTS))('%s runs its list', (test, list) => {
    const source = read(test);
    const missing = list.filter((document) => !source.includes(document));
    if (!source.includes(`DOCUMENTS['${test}']`)) expect(missing).toEqual([]);
  });

  it('can all be reached from the README, through the list of pages', () => {
    expect(read('README.md')).toContain('](docs/README.md)');
    const list = read('docs/README.md');
    const listed = (document: string) => list.includes(`](${document.replace('docs/', '')})`);
    expect(documents.filter((document) => !listed(document))).toEqual(['README.md', 'docs/README.md']);
  });
});

/** The anchors that GitHub gives the headings of a document. */
function anchorsOf(markdown: string): string[] {
  const headings = markdown.replaceAll(/^```[^]*?^```$/gm, '').matchAll(/^#+ (.+)$/gm);
  return Array.from(headings, ([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{Letter}\p{Number} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

describe('links between documents', () => {
  const linked = [...documents, 'CHANGELOG.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md'];

  it.each(linked)('of %s lead to a file and a heading that exist', (document) => {
    const links = read(document).matchAll(/\]\(((?!https?:|mailto:)[^)\s]+)\)/g);
    const broken = Array.from(links, ([, link = '']) => link).filter((link) => {
      const [path = '', anchor] = link.split('#');
      const file = path === '' ? document : join(dirname(document), path);
      if (!existsSync(join(ROOT, file))) return true;
      return anchor !== undefined && !anchorsOf(read(file)).includes(anchor);
    });
    expect(broken).toEqual([]);
  });
});

describe('the blocks of a document', () => {
  const blocks = (...lines: string[]) => codeBlocks(lines.join('\n'));

  it('are commands, configurations and JSON by their language', () => {
    expect(blocks('```sh', 'ls', '```')).toMatchObject([{ kind: 'command', exit: 0, text: 'ls\n', line: 1 }]);
    expect(blocks('```toml', '```', '```json', '{}', '```')).toMatchObject([
      { kind: 'configuration' },
      { kind: 'json' },
    ]);
  });

  it('have the purpose that a comment states', () => {
    const withComment = (comment: string) => blocks(`<!-- ${comment} -->`, '```sh', 'x', '```')[0];
    expect(withComment('not run: needs: a network')).toMatchObject({
      kind: 'not run',
      reason: 'needs: a network',
    });
    expect(withComment('file a/b.py')).toMatchObject({ kind: 'file', path: 'a/b.py' });
    expect(withComment('append a.toml')).toMatchObject({ kind: 'append', path: 'a.toml' });
    expect(withComment('exit 3: no address')).toMatchObject({
      kind: 'command',
      exit: 3,
      reason: 'no address',
    });
    expect(withComment('run by test/a.test.ts')).toMatchObject({ kind: 'run by', test: 'test/a.test.ts' });
  });

  it('lose the indentation of a list', () => {
    expect(blocks('1. Do:', '   ```sh', '   ls', '     -l', '   ```')).toMatchObject([
      { text: 'ls\n  -l\n' },
    ]);
  });

  it('need a purpose and an end', () => {
    expect(() => blocks('```', 'x', '```')).toThrow(/line 1: the block needs a comment/);
    expect(() => blocks('<!-- exit 3 -->', '```yaml', 'x', '```')).toThrow(/line 2: the block needs/);
    expect(() => blocks('```sh', 'x')).toThrow(/line 1: the code block has no end/);
  });
});
