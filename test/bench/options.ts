import { parseArgs } from 'node:util';

/**
 * The command line of a benchmark: `--help`, and errors that name the option.
 *
 *     const options = readOptions({
 *       command: 'npm run bench:campaign',
 *       summary: 'Delivery time of transactional messages while a campaign is sent.',
 *       options: {
 *         members: { integer: 20_000, help: 'members of the group' },
 *         mode: { choice: 'both', of: ['burst', 'both'], help: 'which passes to run' },
 *         json: { flag: 'print the result as JSON' },
 *       },
 *     });
 *     options.members;     // number
 *
 * Without a value an option has its default. `--help` prints the usage and exits with 0; an invalid command line is
 * reported on stderr and exits with 2, as the commands of Postrider do.
 */
export interface CommandLine<Options extends Record<string, OptionSpec>> {
  /** How it is started: `npm run bench`. */
  command: string;
  /** What it measures, one sentence or more. */
  summary: string;
  options: Options;
}

export type OptionSpec =
  /** A whole number, at least `min` (default: 1). */
  | { integer: number; min?: number; help: string }
  /** A number greater than 0. */
  | { number: number; help: string }
  | { choice: string; of: readonly string[]; help: string }
  /** Any text; empty unless it is given. `text` names it in the help: `DIR`. */
  | { text: string; help: string }
  /** False unless it is given; the text is its help. */
  | { flag: string };

export type OptionValues<Options extends Record<string, OptionSpec>> = {
  readonly [Name in keyof Options]: Options[Name] extends { flag: string }
    ? boolean
    : Options[Name] extends { of: readonly (infer Choice)[] }
      ? Choice
      : Options[Name] extends { text: string }
        ? string
        : number;
};

/** Reads `process.argv`; exits the process after `--help` and for an invalid command line. */
export function readOptions<const Options extends Record<string, OptionSpec>>(
  line: CommandLine<Options>,
): OptionValues<Options> {
  const result = parseOptions(line, process.argv.slice(2));
  if (result.kind === 'values') return result.values;
  if (result.kind === 'help') console.log(result.text);
  else console.error(result.text);
  return process.exit(result.kind === 'help' ? 0 : 2);
}

export type ParsedOptions<Options extends Record<string, OptionSpec>> =
  | { kind: 'values'; values: OptionValues<Options> }
  | { kind: 'help' | 'invalid'; text: string };

/** The values of `args`, the usage when they contain `--help`, or what is wrong with them. */
export function parseOptions<const Options extends Record<string, OptionSpec>>(
  line: CommandLine<Options>,
  args: readonly string[],
): ParsedOptions<Options> {
  try {
    const specs = Object.entries(line.options);
    const { values } = parseArgs({
      args: [...args],
      options: Object.fromEntries<{ type: 'boolean' | 'string' }>([
        ...specs.map(([name, spec]) => [name, { type: 'flag' in spec ? 'boolean' : 'string' }] as const),
        ['help', { type: 'boolean' }],
      ]),
    });
    if (values['help'] === true) return { kind: 'help', text: usageOf(line) };
    const parsed = specs.map(([name, spec]) => [name, valueOf(name, spec, values[name])] as const);
    // Sound: `valueOf` returns the type that `OptionValues` names for each kind of option.
    return { kind: 'values', values: Object.fromEntries(parsed) as OptionValues<Options> };
  } catch (error) {
    // `parseArgs` throws a TypeError for unknown options and unexpected arguments.
    if (!(error instanceof InvalidOption || error instanceof TypeError)) throw error;
    return { kind: 'invalid', text: `${error.message}\nSee: ${line.command} -- --help` };
  }
}

class InvalidOption extends Error {}

function valueOf(
  name: string,
  spec: OptionSpec,
  given: string | boolean | undefined,
): number | string | boolean {
  if ('flag' in spec) return given === true;
  if (typeof given !== 'string') return defaultOf(spec);
  if ('text' in spec) return given;
  if ('choice' in spec) {
    if (!spec.of.includes(given))
      throw new InvalidOption(`--${name} must be one of ${spec.of.join(', ')}, not "${given}".`);
    return given;
  }
  const value = given.trim() === '' ? Number.NaN : Number(given);
  if ('number' in spec) {
    if (!(Number.isFinite(value) && value > 0))
      throw new InvalidOption(`--${name} must be a number greater than 0, not "${given}".`);
    return value;
  }
  const { min = 1 } = spec;
  if (!Number.isSafeInteger(value) || value < min)
    throw new InvalidOption(`--${name} must be a whole number of at least ${min}, not "${given}".`);
  return value;
}

function defaultOf(spec: Exclude<OptionSpec, { flag: string }>): number | string {
  if ('choice' in spec) return spec.choice;
  if ('text' in spec) return '';
  return 'number' in spec ? spec.number : spec.integer;
}

function usageOf({ command, summary, options }: CommandLine<Record<string, OptionSpec>>): string {
  const rows = [
    ...Object.entries(options).map(([name, spec]) => {
      if ('flag' in spec) return [`--${name}`, spec.flag];
      if ('text' in spec) return [`--${name} ${spec.text}`, spec.help];
      const values = 'choice' in spec ? `${spec.of.join(', ')}; default ` : 'default ';
      return [`--${name} ${'choice' in spec ? 'NAME' : 'N'}`, `${spec.help} (${values}${defaultOf(spec)})`];
    }),
    ['--help', 'show this help'],
  ];
  const width = Math.max(...rows.map(([option = '']) => option.length));
  const lines = rows.map(([option = '', help = '']) => `  ${option.padEnd(width)}  ${help}`);
  return `Usage: ${command} -- [options]\n\n${summary}\n\nOptions:\n${lines.join('\n')}`;
}
