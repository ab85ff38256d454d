import { createReadStream } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { Command } from 'commander';
import { INCOMING_LIMITS } from '../mail/incoming/limits.ts';
import { type ParsedIncoming, parseFile } from '../mail/incoming/parse.ts';

/** `postrider bounce parse FILE…`: parses raw messages. Needs no configuration and no database. */
export function bounceCommand(): Command {
  const bounce = new Command('bounce').description('Parse bounce messages');
  bounce
    .command('parse')
    .description('Parse raw messages and print one JSON line per file; - reads standard input')
    .argument('<file...>')
    .action(async (files: string[]) => {
      for (const file of files) {
        try {
          process.stdout.write(`${JSON.stringify(printed(parseFile(await read(file))))}\n`);
        } catch (error) {
          // The other files are still parsed.
          process.stderr.write(`${file}: ${error instanceof Error ? error.message : String(error)}\n`);
          process.exitCode = 1;
        }
      }
    });
  return bounce;
}

/** Reads at most as much as is parsed. */
async function read(file: string): Promise<Buffer> {
  const end = INCOMING_LIMITS.mailBytes - 1;
  return buffer(file === '-' ? process.stdin : createReadStream(file, { end }));
}

/** The documented fields, and the content of a DMARC or TLS report. */
function printed(parsed: ParsedIncoming): object {
  const { kind, reports, originalMessageId, originalEnvelopeId, aggregate, tls, problem } = parsed;
  return {
    kind,
    reports: reports.map(({ scope: _scope, suppress: _suppress, ...report }) => report),
    originalMessageId,
    originalEnvelopeId,
    ...(aggregate && { aggregate }),
    ...(tls && { tls }),
    ...(problem && { problem }),
  };
}
