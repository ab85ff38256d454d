import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { allCommands, type CommandHelp, programHelp } from '../../.packaging/commands.ts';

/*
 * Commands within the text of the documents, the alerts and the unit. Those in code blocks are run by the end-to-end
 * tests; these must at least exist with their options.
 */
const ROOT = new URL('../../', import.meta.url).pathname;
const REFERENCE = join(ROOT, 'docs/reference/commands.md');
const TABLE = /(?<=<!-- commands: npm run docs:commands -->\n)[\s\S]*$/;
const FILES = [
  'README.md',
  'config/monitoring/alerts.yml',
  ...['docs', 'docs/reference'].flatMap((folder) =>
    readdirSync(join(ROOT, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`),
  ),
];

let program: CommandHelp;
let scripts: Record<string, string>;
beforeAll(async () => {
  program = await programHelp();
  const manifest: { scripts: Record<string, string> } = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  );
  scripts = manifest.scripts;
  // Loads every command.
});

/** Commands in backticks or double quotes, as the words after `postrider`. */
function commandsIn(text: string): string[][] {
  const spans = text.replaceAll(/^```[^]*?^```$/gm, '').matchAll(/[`"](?:npx )?postrider ([^`"]+)[`"]/g);
  return Array.from(spans, ([, command = '']) => command.trim().split(/\s+/));
}

/** What is wrong with a command; null: nothing. Arguments and values are not examined. */
function faultOf(words: readonly string[]): string | null {
  let command = program;
  const options = [...program.options];
  let isValue = false;
  for (const word of words) {
    const inner = command.commands.find(({ path }) => path.at(-1) === word);
    if (word.startsWith('-')) {
      // Those of a default subcommand are also options of the command.
      const option = options.find(({ names }) => names.includes(word.replace(/=.*/, '')));
      if (option === undefined && word !== '--help') return `there is no option ${word}`;
      isValue = option?.takesValue === true && !word.includes('=');
    } else if (isValue) isValue = false;
    else if (inner !== undefined) {
      command = inner;
      options.push(...inner.options);
    } else if (command === program) return `there is no command ${word}`;
  }
  return null;
}

/** Commands that do something themselves, with the first sentence of their help. */
function tableOf(commands: readonly CommandHelp[]): string {
  const rows = commands
    .filter(({ path, usage }) => path.length > 0 && !usage.endsWith('[command]'))
    .map(({ path, usage, description }) => {
      const called = [...path, usage.replace('[options]', '').trim()].join(' ').trim();
      const [purpose = ''] = description.split('\n');
      return `| \`${called}\` | ${purpose.replaceAll('|', '\\|').replaceAll('<', '&lt;')} |`;
    });
  return ['', '| command | purpose |', '|---|---|', ...rows, ''].join('\n');
}

it('docs/reference/commands.md lists every command (npm run docs:commands writes the list)', () => {
  const page = readFileSync(REFERENCE, 'utf8');
  const table = tableOf(allCommands(program));
  if (process.env['UPDATE_DOCS'] === '1')
    writeFileSync(
      REFERENCE,
      page.replace(TABLE, () => table),
    );
  else expect(TABLE.exec(page)?.[0]).toBe(table);
});

describe('the commands within the text', () => {
  it.each(FILES)('of %s exist with their options', (file) => {
    const text = readFileSync(join(ROOT, file), 'utf8');
    const faults = commandsIn(text).flatMap((words) => {
      const fault = faultOf(words);
      return fault === null ? [] : [`postrider ${words.join(' ')}: ${fault}`];
    });
    expect(faults).toEqual([]);
  });

  it.each(FILES)('of %s that run a script of the project exist', (file) => {
    const text = readFileSync(join(ROOT, file), 'utf8');
    const named = Array.from(text.matchAll(/\bnpm run ([a-z][\w:-]*)/g), ([, name = '']) => name);
    expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  });

  it('are found: an unknown command and an unknown option are reported', () => {
    expect(commandsIn('run `npx postrider nothing` or "postrider backup create --fast"')).toEqual([
      ['nothing'],
      ['backup', 'create', '--fast'],
    ]);
    expect(faultOf(['nothing'])).toBe('there is no command nothing');
    expect(faultOf(['backup', 'create', '--fast'])).toBe('there is no option --fast');
    expect(faultOf(['--config', 'file.toml', 'serve', '--force-new-generation'])).toBe(null);
  });
});
