import type { Command } from 'commander';
import { createContext } from '../src/cli/context.ts';
import { buildProgram } from '../src/cli/program.ts';
import { programVersion } from '../src/config/version.ts';

/** A command of the program as its help describes it: the source of the manual page and of the completions. */
export interface CommandHelp {
  /** `['account', 'create']`; empty: the program itself. */
  path: readonly string[];
  description: string;
  /** `[options] <id>` */
  usage: string;
  arguments: readonly HelpEntry[];
  options: readonly (HelpEntry & {
    /** `--config`, `-V`. */
    names: readonly string[];
    takesValue: boolean;
    choices: readonly string[];
  })[];
  /** Text after the options in the help: examples, signals. */
  notes: string;
  commands: readonly CommandHelp[];
}

interface HelpEntry {
  /** `--config <file>`, `<id>`. */
  term: string;
  description: string;
}

/** Returns the help of the program with all commands. */
export async function programHelp(): Promise<CommandHelp> {
  const program = await buildProgram(
    createContext(() => undefined),
    programVersion(),
    ['help'],
  );
  return helpOf(program, []);
}

function helpOf(command: Command, path: readonly string[]): CommandHelp {
  const help = command.createHelp();
  return {
    path,
    description: command.description(),
    usage: command.usage(),
    arguments: help.visibleArguments(command).map((argument) => ({
      term: help.argumentTerm(argument),
      description: help.argumentDescription(argument),
    })),
    options: help.visibleOptions(command).map((option) => ({
      term: help.optionTerm(option),
      description: help.optionDescription(option),
      names: [option.short, option.long].filter((name) => name !== undefined && name !== null),
      takesValue: option.required || option.optional,
      choices: option.argChoices ?? [],
    })),
    notes: notesOf(command),
    commands: help
      .visibleCommands(command)
      .filter((inner) => inner.name() !== 'help')
      .map((inner) => helpOf(inner, [...path, inner.name()])),
  };
}

/** The text of `addHelpText('after', …)`: what the help has after the generated part. */
function notesOf(command: Command): string {
  let text = '';
  command.configureOutput({ writeOut: (more) => (text += more) }).outputHelp();
  return text.slice(command.helpInformation().length).trim();
}

/** The command and all commands below it, in the order of the help. */
export function allCommands(command: CommandHelp): CommandHelp[] {
  return [command, ...command.commands.flatMap(allCommands)];
}
