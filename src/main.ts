#!/usr/bin/env node
import { ignoreSignals } from './cli/signals.ts';

/*
 * The program. Nothing but the signals is imported statically: loading the rest takes a part of a second, and the
 * handlers have to be installed before.
 */
const args = process.argv.slice(2);
ignoreSignals(args);
const { runProgram } = await import('./cli/run.ts');
await runProgram(args);
