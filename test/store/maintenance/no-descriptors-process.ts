import { openSync } from 'node:fs';
import { pino } from 'pino';
import { checkIntegrity } from '../../../src/store/maintenance/integrity.ts';
import { createNotifier } from '../../../src/supervision/notify.ts';

/* Opens all descriptors that are left, then starts child processes. Prints what the callers get. */

const log = pino({ level: 'silent' });
try {
  for (;;) openSync('/dev/null', 'r');
} catch (error) {
  if (!(error instanceof Error && 'code' in error && error.code === 'EMFILE')) throw error;
}
const { outcome, problems } = await checkIntegrity('none.db', {
  timeoutMs: 60_000,
  signal: new AbortController().signal,
});
const received = await createNotifier({ socket: '/nonexistent/notify', log }).send({ READY: '1' });
process.stdout.write(JSON.stringify({ outcome, problems, received }));
