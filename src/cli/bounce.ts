import { createReadStream } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import type { Command } from 'commander';
import { fileFault } from '../core/operator-fault.ts';
import { INCOMING_LIMITS } from '../mail/incoming/limits.ts';
import { type ParsedIncoming, parseFile } from '../mail/incoming/parse.ts';
import { createCommand, createGroup, option } from './command.ts';
import type { CliContext } from './context.ts';

/** Longer messages are cut off, as the parser does. */
const MAX_BYTES = INCOMING_LIMITS.mailBytes;

/** `postrider bounce parse FILE…`: parses raw messages without a configuration or database. */
export function bounceCommand(context: CliContext): Command {
  const parse = createCommand(context, {
    usage: 'parse <file...>',
    description: 'Parse raw messages and print one JSON line per file; - reads standard input',
    options: [option('--json', 'print JSON (always the case), also for errors')],
    run: async (files) => {
      const unread: string[] = [];
      for (const file of files) {
        try {
          process.stdout.write(`${JSON.stringify(printed(parseFile(await read(file))))}\n`);
        } catch (error) {
          // The other files are still parsed.
          unread.push(fileFault(null, file, error).message);
        }
      }
      context.failSome(unread, files.length - unread.length);
    },
  });
  return createGroup('bounce', 'Parse bounce messages', { commands: [parse] });
}

/** Reads at most MAX_BYTES. */
async function read(file: string): Promise<Buffer> {
  if (file !== '-') return buffer(createReadStream(file, { end: MAX_BYTES - 1 }));
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= MAX_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MAX_BYTES);
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
