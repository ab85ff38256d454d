#!/usr/bin/env node
import { CommanderError } from 'commander';
import { createContext, FAILED, formatError, USAGE } from './cli/context.ts';
import { buildProgram } from './cli/program.ts';
import { ConfigFault } from './config/load.ts';
import { programVersion } from './config/version.ts';
import { StoreFault } from './store/database.ts';

/** The program: builds the command that was called, runs it, and turns what goes wrong into an exit status. */
const args = process.argv.slice(2);
let configFile: () => string | undefined = () => undefined;
const json = args.includes('--json');
const context = createContext(() => configFile(), json);

// `postrider account list | head -1`: a reader that has enough is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

try {
  const program = await buildProgram(context, programVersion(), args);
  configFile = () => program.opts<{ config?: string }>().config;
  if (args.length === 0) program.outputHelp();
  else await program.parseAsync(args, { from: 'user' });
} catch (error) {
  process.exitCode = explain(error);
} finally {
  await context.close();
}

/** Says what went wrong, in one line where it is something a person can mend; returns the exit status. */
function explain(error: unknown): number {
  // Commander has said it already; help and version are no faults.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
  const message = error instanceof Error ? error.message : String(error);
  const known =
    error instanceof ConfigFault ||
    error instanceof StoreFault ||
    (error instanceof Error && 'code' in error);
  const text = `${known ? '' : 'internal error: '}${message}`;
  process.stderr.write(`${formatError(text, FAILED, json)}\n`);
  return FAILED;
}
