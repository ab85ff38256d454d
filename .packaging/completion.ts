import { allCommands, type CommandHelp } from './commands.ts';

/**
 * Returns the bash completion of the commands and options. It determines the command from the words before the cursor and
 * offers its subcommands and options; for values and arguments it offers files.
 */
export function bashCompletion(program: CommandHelp): string {
  return `# bash completion for postrider
_postrider() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} path= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path \${COMP_WORDS[i]}" in
${pathCases(program, (path) => `      ${path}) path="$path \${COMP_WORDS[i]}" ;;`)}
    esac
  done
  local words=
  case "$path $previous" in
${valueCases(program, (pattern, choices) => `    ${pattern}) words='${choices.join(' ')}' ;;`)}
    *)
      case "$path" in
${commandCases(program, (path, words) => `        ${path}) words='${words.join(' ')}' ;;`)}
      esac ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _postrider postrider
`;
}

/** Returns the same completion for zsh, with descriptions. */
export function zshCompletion(program: CommandHelp): string {
  return `#compdef postrider
# zsh completion for postrider
_postrider() {
  local current_path= word
  local -a entries
  for word in \${words[2,CURRENT-1]}; do
    case "$current_path $word" in
${pathCases(program, (path) => `      ${path}) current_path="$current_path $word" ;;`)}
    esac
  done
  case "$current_path \${words[CURRENT-1]}" in
${valueCases(program, (pattern, choices) => `    ${pattern}) entries=(${choices.map((choice) => quote(choice)).join(' ')}) ;;`)}
    *)
      case "$current_path" in
${allCommands(program)
  .map(
    (command) =>
      `        ${quote(pathText(command))}) entries=(${entriesOf(command)
        .map(({ word, description }) => quote(`${word.replaceAll(':', '\\:')}:${description}`))
        .join(' ')}) ;;`,
  )
  .join('\n')}
      esac ;;
  esac
  _describe -t commands postrider entries || _files
}
_postrider "$@"
`;
}

/** Returns the same completion for fish, with descriptions. */
export function fishCompletion(program: CommandHelp): string {
  const commands = allCommands(program);
  return `# fish completion for postrider
function __postrider_path
  set -l path ''
  for word in (commandline -opc)[2..]
    contains -- "$path $word" ${commands
      .slice(1)
      .map((command) => quote(pathText(command)))
      .join(' ')}
    and set path "$path $word"
  end
  echo "$path"
end
function __postrider_at
  set -l path (__postrider_path)
  test "$path" = "$argv[1]"
end
${commands.flatMap(fishLines).join('\n')}
`;
}

function fishLines(command: CommandHelp): string[] {
  const condition = `-n ${quote(`__postrider_at ${quote(pathText(command))}`)}`;
  return [
    ...command.commands.map(
      (inner) =>
        `complete -c postrider ${condition} -f -a ${inner.path.at(-1)} -d ${quote(firstLine(inner.description))}`,
    ),
    ...command.options.map(({ names, takesValue, choices, description }) => {
      const flags = names.map((name) =>
        name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`,
      );
      const value = takesValue ? ' -r' : '';
      const values = choices.length === 0 ? '' : ` -f -a ${quote(choices.join(' '))}`;
      return `complete -c postrider ${condition} ${flags.join(' ')}${value}${values} -d ${quote(firstLine(description))}`;
    }),
  ];
}

/** A case for every command below the program. */
function pathCases(program: CommandHelp, line: (path: string) => string): string {
  return allCommands(program)
    .slice(1)
    .map((command) => line(quote(pathText(command))))
    .join('\n');
}

/** A case for every option with a value: its choices, or none. */
function valueCases(
  program: CommandHelp,
  line: (pattern: string, choices: readonly string[]) => string,
): string {
  return allCommands(program)
    .flatMap((command) =>
      command.options
        .filter(({ takesValue }) => takesValue)
        .map(({ names, choices }) =>
          line(names.map((name) => quote(`${pathText(command)} ${name}`)).join('|'), choices),
        ),
    )
    .join('\n');
}

/** A case for every command with the words that can follow it. */
function commandCases(program: CommandHelp, line: (path: string, words: string[]) => string): string {
  return allCommands(program)
    .map((command) =>
      line(
        quote(pathText(command)),
        entriesOf(command).map(({ word }) => word),
      ),
    )
    .join('\n');
}

function entriesOf(command: CommandHelp): { word: string; description: string }[] {
  return [
    ...command.commands.map(({ path, description }) => ({
      word: path.at(-1) ?? '',
      description: firstLine(description),
    })),
    ...command.options.flatMap(({ names, description }) =>
      names
        .filter((name) => name.startsWith('--'))
        .map((word) => ({ word, description: firstLine(description) })),
    ),
  ];
}

/** ` account create`; '' for the program. */
function pathText({ path }: CommandHelp): string {
  return path.map((name) => ` ${name}`).join('');
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? '';
}

/** A word in single quotes. A single quote in it is written in double quotes, which fish, sh and zsh support. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'"'"'`)}'`;
}
