import { join } from 'node:path';
import { CommanderError } from 'commander';
import { ConfigFault } from '../config/load.ts';
import { programVersion } from '../config/version.ts';
import { OperatorFault } from '../core/operator-fault.ts';
import { DATABASE_FILE } from '../store/database/database.ts';
import { Superseded, usingFault } from '../store/database/failure.ts';
import { type CliContext, createContext, FAILED, SUPERSEDED, USAGE } from './context.ts';
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
    explain(error, context);
  } finally {
    await context.close();
  }
}

/** Reports an error, on one line if the operator can fix it, and sets the exit status. */
function explain(error: unknown, context: CliContext): void {
  // Commander has reported it already; help and version are not errors.
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? 0 : USAGE;
    return;
  }
  const fault = error instanceof OperatorFault ? error : usingFault(databaseFile(context), error);
  const message = fault instanceof Error ? fault.message : String(fault);
  const known = fault instanceof OperatorFault || (fault instanceof Error && 'code' in fault);
  context.report(`${known ? '' : 'internal error: '}${message}`, FAILED);
  if (fault instanceof Superseded) process.exitCode = SUPERSEDED;
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
