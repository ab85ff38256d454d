import { Command, InvalidArgumentError, Option } from 'commander';
import { parseMoment } from '../core/clock.ts';
import type { CliContext } from './context.ts';
import { defaultCommands } from './help.ts';

/*
 * Commands as tables. The types of the arguments and options of a command follow from its usage and from its options:
 * `show <id>` with `--max-size <n>` runs `(id: string, { maxSize }: { maxSize: string | undefined }) => …`.
 */

/** `max-size` is `maxSize`. */
type CamelCase<Name extends string> = Name extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

/** `--no-color` is `color`. */
type KeyOf<Flags extends string> = Flags extends `${string}--no-${infer Name}`
  ? CamelCase<Name>
  : Flags extends `${string}--${infer Name} ${string}`
    ? CamelCase<Name>
    : Flags extends `${string}--${infer Name}`
      ? CamelCase<Name>
      : never;

interface Settings {
  required?: true;
  choices?: readonly string[];
  /** Throws InvalidArgumentError. `before`: the value of an earlier occurrence, or the default. */
  parse?(text: string, before: never): unknown;
  default?: unknown;
}

type Parsed<Flags extends string, Given> = Given extends {
  parse: (text: string, before: never) => infer Value;
}
  ? Value
  : Given extends { choices: readonly (infer Choice)[] }
    ? Choice
    : Flags extends `${string}--no-${string}`
      ? boolean
      : Flags extends `${string}<${string}...>`
        ? string[]
        : Flags extends `${string}[${string}...]`
          ? true | string[]
          : Flags extends `${string}<${string}>`
            ? string
            : true;

type ValueOf<Flags extends string, Given> =
  | Parsed<Flags, Given>
  | (Given extends { required: true } | { default: unknown } ? never : undefined);

/** An option that knows the name and the type of its value; `typed` exists in the type only. */
interface TypedOption<Key extends string, Value> extends Option {
  readonly typed?: { key: Key; value: Value };
}

type AnyOption = TypedOption<string, unknown>;
type Typed<Options extends readonly AnyOption[]> = NonNullable<Options[number]['typed']>;

/** The options of a command by name. */
export type OptionValues<Options extends readonly AnyOption[]> = {
  [Key in Typed<Options>['key']]: Extract<Typed<Options>, { key: Key }>['value'];
};

/** An option of a command, such as `--name <name>`. */
export function option<Flags extends string, const Given extends Settings = object>(
  flags: Flags,
  description: string,
  given?: Given,
): TypedOption<KeyOf<Flags>, ValueOf<Flags, Given>> {
  const added: TypedOption<KeyOf<Flags>, ValueOf<Flags, Given>> = new Option(flags, description);
  const { required, choices, parse, ...settings }: Settings = given ?? {};
  if (required === true) added.makeOptionMandatory();
  if (choices !== undefined) added.choices(choices);
  // Commander passes the value of the last occurrence, which `parse` has returned.
  if (parse !== undefined) added.argParser((text, before) => parse(text, before as never));
  if ('default' in settings) added.default(settings.default);
  return added;
}

/** `messagesPerHour` is `messages-per-hour` on the command line. */
export function flagOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** A whole number from `min` to `max`. */
export function wholeNumber(min: number, max: number, what = 'number'): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (Number.isInteger(number) && number >= min && number <= max) return number;
    throw new InvalidArgumentError(`Must be a ${what} from ${min} to ${max}`);
  };
}

/** Default and maximum number of rows of a list. */
export const ROWS = 50;
const MAX_ROWS = 1000;
export const parseRowLimit = wholeNumber(1, MAX_ROWS);

export const asJson = option('--json', 'print JSON');
export const ofAccount = option('--account <id>', 'the account', { required: true });
export const rowLimit = option('--limit <n>', 'maximum number of rows', {
  parse: parseRowLimit,
  default: ROWS,
});
export const withoutAsking = option('--yes', 'do not ask for confirmation');

/** Notes that a list has more than the `limit` rows that were shown. */
export function noteMore(context: CliContext, limit: number): void {
  const more = limit < MAX_ROWS ? `--limit shows up to ${MAX_ROWS}` : 'filters narrow the list';
  context.note(`There are more than ${limit}: ${more}`);
}

type ArgumentOf<Word extends string> = Word extends `${'<' | '['}${string}...${'>' | ']'}`
  ? [string[]]
  : Word extends `<${string}>`
    ? [string]
    : Word extends `[${string}]`
      ? [string | undefined]
      : [];

/** The arguments of a usage such as `show <id>`. */
type ArgumentsOf<Usage extends string> = Usage extends `${infer Word} ${infer Others}`
  ? [...ArgumentOf<Word>, ...ArgumentsOf<Others>]
  : ArgumentOf<Usage>;

interface CommandTable<Usage extends string, Options extends readonly AnyOption[]> {
  /** Name and arguments. */
  usage: Usage;
  description: string;
  /** Describes the only argument. */
  argument?: string;
  /** Throws InvalidArgumentError for an invalid argument. */
  checkArgument?(text: string): void;
  options?: Options;
  /** Printed after the options; begins with an empty line. */
  help?: string;
  /** Runs when the command line names no subcommand. */
  isDefault?: true;
  run(...given: [...ArgumentsOf<Usage>, OptionValues<Options>]): Promise<void> | void;
}

/** Creates a command. With `--json`, `context` prints JSON while it runs; a failure of `context` ends it. */
export function createCommand<
  const Usage extends string,
  const Options extends readonly AnyOption[] = readonly [],
>(
  context: CliContext,
  {
    usage,
    description,
    argument,
    checkArgument,
    options,
    help,
    isDefault,
    run,
  }: CommandTable<Usage, Options>,
): Command {
  const [name, ...parameters] = usage.split(' ');
  const command = new Command(name).description(description);
  const checked = (text: string) => {
    checkArgument?.(text);
    return text;
  };
  if (argument !== undefined)
    command.argument(parameters.join(' '), argument, checkArgument === undefined ? undefined : checked);
  else if (parameters.length > 0) command.arguments(parameters.join(' '));
  for (const added of options ?? []) command.addOption(added);
  if (help !== undefined) command.addHelpText('after', help);
  if (isDefault === true) defaultCommands.add(command);
  return command.action((...given: [...ArgumentsOf<Usage>, OptionValues<Options>]) =>
    context.run(command.opts<{ json?: boolean }>().json === true, async () => run(...given)),
  );
}

/** Creates a command whose subcommands do the work. */
export function createGroup(
  name: string,
  description: string,
  { help, commands }: { help?: string; commands: readonly Command[] },
): Command {
  const group = new Command(name).description(description);
  if (help !== undefined) group.addHelpText('after', help);
  for (const command of commands) group.addCommand(command, { isDefault: defaultCommands.has(command) });
  return group;
}

/** The time of an option such as `--from`. */
export function momentOf(context: CliContext, flag: string, text: string): number {
  return (
    parseMoment(text) ??
    context.usage(
      `${flag} must be a date such as 2026-02-01 or a time with zone such as 2026-02-01T12:00:00Z`,
    )
  );
}
