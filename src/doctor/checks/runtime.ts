import { DAY } from '../../core/clock.ts';
import type { DoctorContext } from '../context.ts';
import { failure, ok, type Result, warning } from '../finding.ts';

/** End of life of the Node.js release lines that Postrider supports (https://nodejs.org/en/about/previous-releases). */
const END_OF_LIFE: Readonly<Record<number, string | undefined>> = {
  20: '2026-04-30',
  22: '2027-04-30',
  24: '2028-04-30',
};
const OLDEST = [20, 19] as const;
/** How long before its end a release line is reported. */
const NOTICE_MS = 60 * DAY;
const FIX = 'Install Node.js 24 (or 22) from https://nodejs.org/en/download, then restart postrider';

/**
 * A version below `OLDEST` is a failure. Warnings: a release line that is not listed, is past its end of life, or
 * reaches it within 60 days.
 */
export async function examineRuntime({ machine, clock }: DoctorContext): Promise<Result> {
  const version = machine.nodeVersion;
  const now = clock.now();
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const subject = `Node.js ${version}`;
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))
    return failure(subject, `Postrider needs Node.js ${OLDEST.join('.')} or newer.`, FIX);
  const end = END_OF_LIFE[major];
  if (end === undefined)
    return warning(subject, 'Postrider is not tested with this release line; 22 and 24 are supported.', FIX);
  const endsAt = Date.parse(`${end}T23:59:59Z`);
  if (now > endsAt)
    return warning(subject, `Its security support ended on ${end}; 22 and 24 are supported.`, FIX);
  if (now > endsAt - NOTICE_MS) return warning(subject, `Its security support ends on ${end}.`, FIX);
  return ok(subject, `Supported until ${end}.`);
}
