import { readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';

const LINK = /\[([^\]]*)\]\(([^)#\s]+\.md)(?:#[^)]*)?\)/g;

/**
 * The sidebar: the rows of the table "All pages" of docs/README.md, each with its pages in their order. Pages that only the lists
 * above name follow, below the title of their list. `root`: the directory of the project.
 */
export function sidebar(root) {
  const [lists, table] = readFileSync(join(root, 'docs/README.md'), 'utf8').split('## All pages');
  const groups = new Map();
  const listed = new Set();
  const add = (group, text) => {
    for (const [, label, target] of text.matchAll(LINK)) {
      const file = normalize(join('docs', target));
      if (listed.has(file)) continue;
      listed.add(file);
      groups.set(group, [...(groups.get(group) ?? []), { text: capitalized(title(root, file, label)), link: address(file) }]);
    }
  };
  for (const line of table.split('\n')) {
    const [, name = '', links = ''] = line.split('|').map((cell) => cell.trim());
    if (links !== '') add(capitalized(name), links);
  }
  let group = '';
  for (const line of lists.split('\n')) {
    group = /^\*\*(.+?)\.?\*\*/.exec(line)?.[1] ?? group;
    add(group, line);
  }
  return [...groups].map(([text, items]) => ({ text, items, collapsed: false }));
}

/** The address of a page of the project: those of docs/ are at the top, its list of pages is the start. */
export function address(file) {
  return file === 'docs/README.md' ? '/' : `/${file.replace(/^docs\//, '').replace(/\.md$/, '')}`;
}

/** The label of a link to a page, or the title of the page if the label is a file name. */
export function title(root, file, label) {
  if (!label.endsWith('.md')) return label;
  const text = readFileSync(join(root, file), 'utf8');
  return /^# (.+)$/m.exec(text)?.[1].replaceAll('`', '') ?? label;
}

function capitalized(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
