import { join } from 'node:path';
import { CommanderError } from 'commander';
import { ConfigFault } from '../config/load.ts';
import { programVersion } from '../config/version.ts';
import { OperatorFault } from '../core/operator-fault.ts';
import { DATABASE_FILE } from '../store/database/database.ts';
import { Superseded, usingFault } from '../store/database/failure.ts';
import { type CliContext, createContext, FAILED, formatError, SUPERSEDED, USAGE } from './context.ts';
import { buildProgram, namedConfig } from './program.ts';

/** Runs the command that `args` calls; reports errors and sets the exit status. */
export async function runProgram(args: string[]): Promise<void> {
  let configFile: () => string | undefined = () => undefined;
  const json = args.includes('--json');
  const context = createContext(() => configFile(), { json });

  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // `postrider account list | head -1`: the reader has closed the pipe.
    if (error.code === 'EPIPE') return;
    process.stderr.write(`postrider: writing the output failed: ${error.message}\n`);
    process.exitCode = FAILED;
  });

  try {
    const program = await buildProgram(context, programVersion(), args);
    configFile = () => namedConfig(program);
    if (args.length === 0) program.outputHelp();
    else await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    process.exitCode = explain(error, context, json);
  } finally {
    await context.close();
  }
}

/** Reports an error, on one line if the operator can fix it; returns the exit status. */
function explain(error: unknown, context: CliContext, json: boolean): number {
  // Commander has reported it already; help and version are not errors.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
  const fault = error instanceof OperatorFault ? error : usingFault(databaseFile(context), error);
  const message = fault instanceof Error ? fault.message : String(fault);
  const known = fault instanceof OperatorFault || (fault instanceof Error && 'code' in fault);
  process.stderr.write(`${formatError(`${known ? '' : 'internal error: '}${message}`, FAILED, json)}\n`);
  return fault instanceof Superseded ? SUPERSEDED : FAILED;
}

function databaseFile(context: CliContext): string {
  try {
    return join(context.config().data.dir, DATABASE_FILE);
  } catch (error) {
    // A configuration that cannot be read is reported by the command itself.
    if (error instanceof ConfigFault) return DATABASE_FILE;
    throw error;
  }
}
