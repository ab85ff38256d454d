#!/usr/bin/env node
import { ignoreSignals } from './cli/signals.ts';

/*
 * The program. Only the signal handlers are imported statically: loading the rest takes a fraction of a second, and the
 * handlers must be installed before that.
 */
const args = process.argv.slice(2);
ignoreSignals(args);
const { runProgram } = await import('./cli/run.ts');
await runProgram(args);
