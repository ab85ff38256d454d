import { beforeAll, describe, expect, it } from 'vitest';
import { allCommands, type CommandHelp, programHelp } from '../../.packaging/commands.ts';
import { createContext } from '../../src/cli/context.ts';
import { buildProgram } from '../../src/cli/program.ts';

/** The help of a command on lines of any length. */
async function helpOf(...path: string[]): Promise<string> {
  const context = createContext(() => undefined);
  const program = await buildProgram(context, '0.0.0', ['help']);
  let command = program;
  for (const name of path) {
    const inner = command.commands.find((one) => one.name() === name);
    if (inner === undefined) throw new Error(`there is no command ${name}`);
    command = inner;
  }
  let text = '';
  command.configureOutput({ writeOut: (more) => (text += more), getOutHelpWidth: () => 1000 }).outputHelp();
  return text.replaceAll(/ {2,}/g, '  ');
}

let program: CommandHelp;
beforeAll(async () => {
  program = await programHelp();
  // Loads every command.
});

describe('the help', () => {
  it('lists the commands in groups', async () => {
    const help = await helpOf();
    expect(Array.from(help.matchAll(/^(\S.*):$/gm), ([, heading]) => heading)).toEqual([
      'Options',
      'Set up and run',
      'Sending',
      'Recipients',
      'Inbound mail',
      'Queue and delivery',
      'Diagnosis',
      'Data',
      'Help',
    ]);
  });

  it('marks required options', async () => {
    const help = await helpOf('key', 'create');
    expect(help).toContain('--account <id>  account of the key (required)');
    expect(help).toContain('--name <name>  name shown in lists\n');
  });

  it('lists the options of the default subcommand, and marks it', async () => {
    const help = await helpOf('restore');
    expect(help).toMatch(/^ {2}--data <dir>/m);
    expect(help).toMatch(/^ {2}--from-copy <file>/m);
    expect(help).toMatch(/^ {2}from .* \(default\)$/m);
    expect(help).not.toMatch(/^ {2}held .* \(default\)$/m);
  });

  it('shows no default that is empty', () => {
    const descriptions = allCommands(program).flatMap(({ options }) =>
      options.map(({ description }) => description),
    );
    expect(descriptions.filter((text) => /default: (?:""|\[\]|\{\})/.test(text))).toEqual([]);
    expect(descriptions).toContain('event types (default: ["*"])');
  });
});
