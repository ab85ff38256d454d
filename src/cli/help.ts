import { type Command, Help, type Option } from 'commander';

/** The subcommands that run when the command line names none. The help of the command above lists their options, too. */
export const defaultCommands = new WeakSet<Command>();

/** How the help of every command describes options and subcommands. Manual pages and completions are derived from it. */
export const HELP: Partial<Help> = {
  visibleOptions(command: Command): Option[] {
    const own = Help.prototype.visibleOptions.call(this, command);
    const inner = command.commands.find((one) => defaultCommands.has(one));
    if (inner === undefined) return own;
    const inherited = Help.prototype.visibleOptions.call(this, inner);
    return [...inherited.filter(({ long }) => long !== '--help'), ...own];
  },
  optionDescription(option: Option): string {
    const text = isEmpty(option.defaultValue)
      ? option.description
      : Help.prototype.optionDescription.call(this, option);
    return option.mandatory ? `${text} (required)` : text;
  },
  subcommandDescription(command: Command): string {
    const text = Help.prototype.subcommandDescription.call(this, command);
    return defaultCommands.has(command) ? `${text} (default)` : text;
  },
};

/** Whether a default value is not worth printing: an empty text, list or object. */
function isEmpty(value: unknown): boolean {
  return value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0);
}
