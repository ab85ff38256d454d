/*
 * How long tests wait: for a test that hangs, not for a slow one. Durations belong to the machine: on a busy one, with a low
 * priority, everything takes many times as long. Tests state no other timeouts.
 */

/** A condition that another process, thread or server fulfills, and a poll of `expect`. */
export const PATIENCE_MS = 240_000;

/** As PATIENCE_MS, for the largest loads of the project `long`. */
export const LONG_PATIENCE_MS = 600_000;

/** A test, and what runs before and after it. */
export const TEST_TIMEOUT_MS = 300_000;

/** A test of the project `long`. */
export const LONG_TEST_TIMEOUT_MS = 900_000;
