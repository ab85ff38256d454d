import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { allCommands, type CommandHelp, programHelp } from '../../.packaging/commands.ts';
import { bashCompletion, fishCompletion, zshCompletion } from '../../.packaging/completion.ts';
import { programPage, settingsPage } from '../../.packaging/manual.ts';
import { entry, preformatted } from '../../.packaging/roff.ts';
import { FAILED, PARTIAL, SUPERSEDED, USAGE } from '../../src/cli/context.ts';
import { settingSections } from '../../src/config/example.ts';
import { findProgram, requirePrograms } from '../support/required-programs.ts';

const PAGE = { version: '1.2.3', date: '2026-11-22' };
let program: CommandHelp;

// Loads every command from source, which takes long on a busy machine.
beforeAll(async () => {
  program = await programHelp();
});

/** The text of a page without its markup. */
const plain = (page: string) => page.replaceAll('\\-', '-').replaceAll('\\e', '\\').replaceAll('\\(dq', '"');

describe('postrider(1)', () => {
  it('describes every command and every option', () => {
    const page = plain(programPage(program, PAGE));
    const commands = allCommands(program).slice(1);
    expect(commands.length).toBeGreaterThan(60);
    for (const { path, options, description } of commands) {
      expect(page).toContain(`.SS "postrider ${path.join(' ')}`);
      expect(page).toContain(description.replaceAll(/^(?=[.'])/gm, '\\&'));
      for (const { term, names } of options)
        if (!names.includes('--help')) expect(page).toContain(`.B "${term.replaceAll('"', '\\(dq')}"`);
    }
  });

  it('has the examples and the signals of the help', () => {
    const page = plain(programPage(program, PAGE));
    expect(page).toContain('SIGHUP            reload the configuration');
    expect(page).toContain('postrider account disable acct_8f3k2m9x0q1z');
  });

  it('explains every exit status', () => {
    const page = plain(programPage(program, PAGE));
    for (const status of [FAILED, USAGE, PARTIAL, SUPERSEDED]) expect(page).toContain(`.B "${status}"\n`);
  });
});

describe('postrider.toml(5)', () => {
  it('describes every setting with its default', () => {
    const page = plain(settingsPage(PAGE));
    for (const { name, settings } of settingSections()) {
      if (name !== '') expect(page).toContain(`.SS "[${name}]"`);
      for (const { key, description } of settings) expect(page).toContain(`.B "${key}"\n${description}`);
    }
    expect(page).toContain("Default: the machine's host name");
    expect(page).toContain('Default: "127.0.0.1:8080"');
  });
});

describe('text as man(7) macros', () => {
  it('escapes what roff would interpret', () => {
    expect(entry('--a "b"', '.TH is text, \\ too')).toBe(
      '.TP\n.B "\\-\\-a \\(dqb\\(dq"\n\\&.TH is text, \\e too',
    );
    expect(preformatted("'x'\n.y")).toBe(".PP\n.nf\n\\&'x'\n\\&.y\n.fi");
  });
});

const groff = findProgram('groff');
it.skipIf(groff === null)(
  `the pages have no errors${groff === null ? ' [skipped: groff is not installed]' : ''}`,
  () => {
    for (const page of [programPage(program, PAGE), settingsPage(PAGE)]) {
      const output = execFileSync('sh', ['-c', 'groff -man -Kutf8 -Tutf8 -ww 2>&1 >/dev/null'], {
        input: page,
        encoding: 'utf8',
      });
      expect(output).toBe('');
    }
  },
);

describe('completions', () => {
  /** What bash offers for the last word. */
  function complete(...words: string[]): string[] {
    const script = `${bashCompletion(program)}
      COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _postrider; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const output = execFileSync('bash', ['-c', script, 'bash', 'postrider', ...words], { encoding: 'utf8' });
    return output.split('\n').filter((word) => word !== '');
  }

  it('offers commands, subcommands and options in bash', () => {
    expect(complete('acc')).toEqual(['account']);
    expect(complete('account', '')).toEqual(expect.arrayContaining(['create', 'list', 'disable', '--help']));
    expect(complete('--config', 'x.toml', 'account', 'cr')).toEqual(['create']);
    expect(complete('account', 'create', '--na')).toEqual(['--name']);
    expect(complete('domain', 'show', 'domain_1', '--j')).toEqual(['--json']);
  });

  it('offers the options of a subcommand that is not named in bash', () => {
    expect(complete('restore', 'backups', '--d')).toEqual(['--data']);
    expect(complete('restore', '--from-copy', 'postrider.db', '--d')).toEqual(['--data']);
    expect(complete('backup', 'backups', '--i')).toEqual(['--include-key']);
  });

  it('offers files in bash as values and where nothing else fits', () => {
    expect(complete('--config', '')).toEqual([]);
    expect(complete('bounce', 'parse', 'mail')).toEqual([]);
  });

  const fish = requirePrograms('fish');
  it.skipIf(fish.missing)(`offers the same in fish${fish.reason}`, () => {
    const dir = mkdtempSync(join(tmpdir(), 'postrider-completion-'));
    onTestFinished(() => rmSync(dir, { recursive: true }));
    writeFileSync(join(dir, 'postrider.fish'), fishCompletion(program));
    const offered = (line: string) => {
      const script = `source '${join(dir, 'postrider.fish')}'; complete -C '${line}' 2>&1`;
      const env = { PATH: process.env['PATH'], HOME: dir };
      const output = execFileSync('fish', ['--no-config', '-c', script], { encoding: 'utf8', env, cwd: dir });
      return output
        .trim()
        .split('\n')
        .map((entry) => entry.split('\t')[0]);
    };
    expect(offered('postrider acc')).toEqual(['account']);
    expect(offered('postrider account cr')).toEqual(['create']);
    expect(offered('postrider --config x.toml domain ad')).toEqual(['add']);
    expect(offered('postrider account create --na')).toEqual(['--name']);
  });

  const zsh = requirePrograms('zsh');
  it.skipIf(zsh.missing)(`has a valid script with every command for zsh${zsh.reason}`, () => {
    const script = zshCompletion(program);
    for (const { path } of allCommands(program).slice(1)) expect(script).toContain(`' ${path.join(' ')}'`);
    expect(execFileSync('zsh', ['-n', '-s'], { input: script, encoding: 'utf8' })).toBe('');
  });
});
