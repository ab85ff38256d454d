// Builds the site of docs/ into dist/: `npm run docs` of the project. The pages are copied to pages/ first, where VitePress reads
// them: the pages of docs/, and those of the project to which they link.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { build } from 'vitepress';
import { address, title } from './sidebar.mjs';

const { values } = parseArgs({
  options: {
    // The API reference as HTML, from `npm run docs:api`.
    api: { type: 'string', default: '../../dist/docs' },
    out: { type: 'string', default: 'dist' },
  },
});
const SITE = import.meta.dirname;
const ROOT = resolve(SITE, '../..');
const PAGES = join(SITE, 'pages');
const PUBLIC = join(PAGES, 'public');
const LINK = /(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g;

rmSync(PAGES, { recursive: true, force: true });
const documents = markdownFiles(join(ROOT, 'docs'));
const linked = documents.flatMap(linkedPages).filter((file) => !documents.includes(file));
const pages = new Set([...documents, ...linked]);
for (const file of pages) write(place(file), page(file));
cpSync(resolve(SITE, values.api), join(PUBLIC, 'api'), { recursive: true });
copy(join(ROOT, 'src/console/favicon.svg'), join(PUBLIC, 'favicon.svg'));
await build(SITE, { outDir: resolve(SITE, values.out) });

/** The pages below a directory. */
function markdownFiles(dir) {
  return readdirSync(dir, { recursive: true })
    .filter((name) => name.endsWith('.md') && !name.startsWith('site/'))
    .map((name) => join(dir, name));
}

/** The pages of the project to which a page links. */
function linkedPages(file) {
  return [...readFileSync(file, 'utf8').matchAll(LINK)]
    .map(([, , , target]) => resolve(dirname(file), target.split('#')[0]))
    .filter((target) => target.endsWith('.md') && target.startsWith(`${ROOT}/`) && existsSync(target));
}

/** Where the copy of a page is: its path is its address. */
function place(file) {
  return join(PAGES, `${address(relative(ROOT, file)).replace(/\/$/, '/index')}.md`);
}

/**
 * The text of a page, without what is for the tests only. Links between pages are addresses of the site. A link to another file of
 * docs/ leads to its copy; one to another file of the project is text.
 */
function page(file) {
  const blocks = readFileSync(file, 'utf8').split(/^( *```[\s\S]*?^ *```$)/m);
  return blocks.map((block, at) => (at % 2 === 1 ? block : prose(file, block))).join('');
}

function prose(file, text) {
  return text
    .replaceAll(/^ *<!--.*-->\n/gm, '')
    .replaceAll(LINK, (link, image, label, target) => {
      if (/^(#|[a-z]+:)/.test(target)) return link;
      const path = resolve(dirname(file), target.split('#')[0]);
      // VitePress reports a link to a file that does not exist.
      if (!existsSync(path)) return link;
      const [, hash = ''] = /(#.*)/.exec(target) ?? [];
      if (pages.has(path)) {
        const name = relative(ROOT, path);
        return `[${title(ROOT, name, label)}](${address(name)}${hash})`;
      }
      if (!path.startsWith(join(ROOT, 'docs/')) || statSync(path).isDirectory()) return label;
      const name = relative(join(ROOT, 'docs'), path);
      copy(path, join(PUBLIC, name));
      return image ? `![${label}](/${name})` : `[${label}](/${name}){target="_self"}`;
    });
}

function copy(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to);
}

function write(file, text) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
