import { settingSections } from '../src/config/example.ts';
import { allCommands, type CommandHelp } from './commands.ts';
import { entry, paragraph, preformatted, section, subsection, title } from './roff.ts';

/** Options of a manual page. Pages are generated from the help of the commands and from the settings. */
export interface PageOptions {
  version: string;
  /** As `2026-11-22`. */
  date: string;
}

/** Returns the page postrider(1). */
export function programPage(program: CommandHelp, { version, date }: PageOptions): string {
  const [, ...commands] = allCommands(program);
  return page([
    title('POSTRIDER', 1, date, `Postrider ${version}`, 'User Commands'),
    section('NAME'),
    'postrider \\- self\\-hosted mail platform',
    section('SYNOPSIS'),
    paragraph(`postrider [--config FILE | --instance NAME] COMMAND [OPTIONS] [ARGUMENTS]`),
    section('DESCRIPTION'),
    paragraph(program.description),
    paragraph(
      'The daemon ("postrider serve") accepts messages over HTTP and SMTP, signs them and delivers them to the mail servers of the recipients. The other commands work on the same database, also while the daemon runs; only "migrate", "contacts compact", "restore" of a backup and "restore hold" require that it is stopped. The installed program, when it is called by root, runs as the user postrider, for an instance as postrider-NAME.',
    ),
    section('OPTIONS'),
    ...program.options.map(({ term, description }) => entry(term, description)),
    section('COMMANDS'),
    ...commands.flatMap(commandLines),
    section('EXIT STATUS'),
    ...EXIT_STATUSES.map(([status, meaning]) => entry(status, meaning)),
    section('ENVIRONMENT'),
    ...ENVIRONMENT.map(([name, meaning]) => entry(name, meaning)),
    section('FILES'),
    ...FILES.map(([file, meaning]) => entry(file, meaning)),
    section('SEE ALSO'),
    paragraph('postrider.toml(5), systemctl(1), journalctl(1)'),
  ]);
}

function commandLines(command: CommandHelp): string[] {
  return [
    subsection(`postrider ${[...command.path, command.usage].join(' ').trim()}`),
    paragraph(command.description),
    ...command.arguments.map(({ term, description }) => entry(term, description)),
    ...command.options
      .filter(({ names }) => !names.includes('--help'))
      .map(({ term, description }) => entry(term, description)),
    ...(command.notes === '' ? [] : [preformatted(command.notes)]),
  ];
}

const EXIT_STATUSES = [
  ['0', 'Success.'],
  ['1', 'Failure.'],
  ['2', 'Error in the command line or in its values.'],
  ['3', 'Partial success, or a failed check.'],
  ['4', 'Another daemon has taken over the database.'],
] as const;

const ENVIRONMENT = [
  ['POSTRIDER_CONFIG', 'The configuration file, unless --config names one.'],
  ['POSTRIDER_<SETTING>', 'A setting; see postrider.toml(5).'],
  ['CREDENTIALS_DIRECTORY', 'Set by systemd: the file master.key in it is used as the master key.'],
  ['NOTIFY_SOCKET, WATCHDOG_USEC', 'Set by systemd: the daemon reports its state; see sd_notify(3).'],
  ['NO_COLOR', 'If set, output has no colors.'],
] as const;

const FILES = [
  ['/etc/postrider/postrider.toml', 'Configuration; see postrider.toml(5).'],
  ['/var/lib/postrider', 'Database and master key (data.dir in the configuration of the package).'],
  [
    '/etc/postrider-NAME, /var/lib/postrider-NAME',
    'The same for one of several daemons: postrider@NAME.service.',
  ],
  ['/etc/credstore/postrider.master-key', 'Optional: the master key as a credential of the service.'],
] as const;

/** Returns the page postrider.toml(5). */
export function settingsPage({ version, date }: PageOptions): string {
  return page([
    title('POSTRIDER.TOML', 5, date, `Postrider ${version}`, 'File Formats'),
    section('NAME'),
    'postrider.toml \\- configuration of Postrider',
    section('SYNOPSIS'),
    paragraph('/etc/postrider/postrider.toml'),
    section('DESCRIPTION'),
    paragraph(
      'A TOML file. Each setting has a default. Unknown keys and invalid values are errors: the daemon does not start and names them. Relative paths start from the directory of the file.',
    ),
    paragraph(
      'Environment variables override settings: POSTRIDER_API__LISTEN=127.0.0.1:9090 sets listen in [api]. Durations are a number of seconds or a text such as "30s", "5m", "4h", "2d".',
    ),
    paragraph(
      'On SIGHUP (systemctl reload postrider) the daemon reads the file again and logs what needs a restart.',
    ),
    section('SETTINGS'),
    ...settingSections().flatMap(({ name, settings }) => [
      ...(name === '' ? [] : [subsection(`[${name}]`)]),
      ...settings.flatMap(({ key, description, shownDefault }) => [
        entry(key, description),
        ...defaultLines(shownDefault),
      ]),
    ]),
    section('EXAMPLE'),
    preformatted(EXAMPLE),
    section('FILES'),
    entry('/usr/share/doc/postrider/examples/postrider.example.toml', 'Every setting with its default.'),
    section('SEE ALSO'),
    paragraph('postrider(1)'),
  ]);
}

/** In the example file further lines of a default and a default in words are comments. */
function defaultLines(shownDefault: string): string[] {
  const inWords = /^"" {2}# default: (.*)$/.exec(shownDefault)?.[1];
  const text = inWords ?? shownDefault.replaceAll(/^#/gm, '');
  return text.includes('\n')
    ? ['.RS', paragraph('Default:'), preformatted(text), '.RE']
    : ['.RS', paragraph(`Default: ${text}`), '.RE'];
}

const EXAMPLE = `hostname = "mail.example.net"
[data]
dir = "/var/lib/postrider"
[public]
url = "https://track.mail.example.net"`;

function page(lines: string[]): string {
  return `${lines.join('\n')}\n`;
}
