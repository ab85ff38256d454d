import { settingSections } from '../../src/config/example.ts';

const BEGIN = '<!-- settings: written by "npm run docs:config" -->';

/** The text of docs/configuration.md with the table of all settings from the schema. */
export function withSettingsTable(document: string): string {
  const [before = ''] = document.split(BEGIN);
  return `${before}${BEGIN}\n\n${settingsTables()}`;
}

function settingsTables(): string {
  return settingSections()
    .map(({ name, settings }) => {
      const rows = settings.map(
        ({ key, description, shownDefault, appliedBy }) =>
          `| \`${key}\` | ${defaultText(shownDefault)} | ${appliedBy ?? ''} | ${escaped(description)} |`,
      );
      const heading = name === '' ? 'Top level' : `[${name}]`;
      return [
        `### ${heading}`,
        '',
        '| setting | default | change | |',
        '|---|---|---|---|',
        ...rows,
        '',
      ].join('\n');
    })
    .join('\n');
}

function defaultText(shown: string): string {
  const description = /^"" {2}# default: (.*)$/.exec(shown)?.[1];
  if (description !== undefined) return escaped(description);
  // Lists of tables are in the example file.
  return shown.includes('\n') ? 'see the example file' : `\`${escaped(shown)}\``;
}

function escaped(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}
