import { createReadStream } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { Command } from 'commander';
import { INCOMING_LIMITS } from '../mail/incoming/limits.ts';
import { type ParsedIncoming, parseFile } from '../mail/incoming/parse.ts';

/** `bounce parse FILE…`: reads raw mail files and prints one JSON line each. Needs no config and no database. */
export function bounceCommand(): Command {
  const bounce = new Command('bounce').description('read mail that came back');
  bounce
    .command('parse')
    .description('print what each raw mail file says, one JSON line a file; - reads standard input')
    .argument('<file...>')
    .action(async (files: string[]) => {
      for (const file of files) {
        try {
          process.stdout.write(`${JSON.stringify(printed(parseFile(await read(file))))}\n`);
        } catch (error) {
          // One file that cannot be read must not hide what the others say.
          process.stderr.write(`${file}: ${error instanceof Error ? error.message : String(error)}\n`);
          process.exitCode = 1;
        }
      }
    });
  return bounce;
}

/** At most as much as would be looked at. */
async function read(file: string): Promise<Buffer> {
  const end = INCOMING_LIMITS.mailBytes - 1;
  return buffer(file === '-' ? process.stdin : createReadStream(file, { end }));
}

/** The keys of the contract, and of a DMARC or TLS report its content. */
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
