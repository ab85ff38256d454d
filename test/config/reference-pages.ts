import { settingSections } from '../../src/config/example.ts';
import { REPLY_MEANINGS } from '../../src/config/reply-rules.ts';
import { MEANINGS, type Meaning } from '../../src/mail/classify/rules.ts';

/*
 * The pages of docs/reference/ that are generated from the schema of the configuration and the classifier.
 */

/** docs/reference/settings.md. */
export function settingsPage(): string {
  return `# Settings

Every setting with its default. [configuration.md](../configuration.md) describes how to change one.

- *change* is \`reload\` for settings that \`systemctl reload postrider\` applies, and \`restart\` for the others.
- Durations are a number of seconds or a string such as \`30s\`, \`5m\`, \`4h\`, \`2d\`.

${written('docs:config')}

${settingsTables()}`;
}

/** docs/reference/replies.md. */
export function repliesPage(): string {
  const rows = REPLY_MEANINGS.map((name) => {
    const value: Meaning = MEANINGS[name];
    return `| \`${name}\` | \`${value.bounceClass}\` | ${value.bounceType} | ${aboutOf(value)} | ${suppressionOf(value)} |`;
  });
  return `# Meanings of replies

The values of \`meaning\` in \`[[delivery.replies]]\`. [delivery.md](../delivery.md#classify-a-reply) describes how to write a rule.

- Only a message that bounces suppresses its address. A deferral never does.
- \`rate limit\` and \`TLS failed\` are tried again even after a 5xx reply.
- \`IP address blocklisted\` in reply to RCPT or later is final. Earlier it is tried again, because it concerns all recipients.

${written('docs:config')}

| meaning | classification | bounce | about | suppresses the address |
|---|---|---|---|---|
${rows.join('\n')}
`;
}

/** The comment above a generated table. */
export const written = (script: string): string => `<!-- written by "npm run ${script}" -->`;

function aboutOf({ scope, isAboutAddress }: Meaning): string {
  return isAboutAddress === true ? 'your address' : scope;
}

function suppressionOf({ suppress, scope, bounceType }: Meaning): string {
  if (suppress === 'now') return 'immediately';
  if (suppress === 'second-time') return 'when repeated on another day';
  return scope === 'recipient' && bounceType === 'soft' ? 'after 5 bounces in 14 days' : 'never';
}

function settingsTables(): string {
  return settingSections()
    .map(({ name, settings }) => {
      const rows = settings.map(
        ({ key, description, shownDefault, appliedBy }) =>
          `| \`${key}\` | ${defaultText(shownDefault)} | ${appliedBy ?? ''} | ${escaped(description)} |`,
      );
      const heading = name === '' ? 'Top level' : `[${name}]`;
      return [`## ${heading}`, '', '| setting | default | change | |', '|---|---|---|---|', ...rows, ''].join(
        '\n',
      );
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
