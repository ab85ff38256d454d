#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8';
import { ignoreSignals } from './cli/signals.ts';

/*
 * The program. Only the signal handlers are imported statically: loading the rest takes a fraction of a second, and the
 * handlers must be installed before that.
 *
 * Several threads collect the young generation together by default. Under load all cores are busy, and what they spend on
 * sharing that work is lost: four threads used 0.4 of two cores.
 */
setFlagsFromString('--no-parallel-scavenge');
const args = process.argv.slice(2);
ignoreSignals(args);
const { runProgram } = await import('./cli/run.ts');
await runProgram(args);
