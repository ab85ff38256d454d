import { monotonicClock, SECOND, systemClock } from '../../core/clock.ts';
import { systemRandom } from '../../core/random.ts';
import { createResolver } from '../../dns/resolver.ts';
import { CHECKS } from '../../doctor/checks.ts';
import { findDaemon } from '../../doctor/daemon-report.ts';
import { thisMachine } from '../../doctor/machine.ts';
import { openForDoctor } from '../../doctor/open-database.ts';
import { type Progress, runChecks } from '../../doctor/run.ts';
import { countsOf } from '../../doctor/service.ts';
import { normalizeDomain } from '../../mail/address.ts';
import { type CliContext, tableOptions } from '../context.ts';
import { formatFindings } from './report.ts';

export interface DoctorCommandOptions {
  domain: string | undefined;
  all: true | undefined;
  integrityTimeout: number;
}

const MAX_DOMAINS = 50;

/** Runs all checks and prints the findings; the exit status is 3 if there are failures. */
export async function examine(context: CliContext, options: DoctorCommandOptions): Promise<void> {
  const domain = options.domain === undefined ? null : normalizeDomain(options.domain);
  if (options.domain !== undefined && domain === null)
    return context.usage(`--domain ${options.domain} is not a domain name such as example.com`);
  const config = context.config();
  const { database, close } = openForDoctor(config.data.dir);
  const resolver = createResolver({ ...config.dns, monotonic: monotonicClock, random: systemRandom });
  const progress = createProgressLine(process.stderr);
  const began = monotonicClock.now();
  try {
    const parts = {
      config,
      clock: systemClock,
      monotonic: monotonicClock,
      random: systemRandom,
      resolver,
      database,
      daemon: (signal: AbortSignal) =>
        findDaemon(
          { listen: config.api.listen, metricsKey: config.api.metricsKey, dataDir: config.data.dir },
          signal,
        ),
      machine: thisMachine(config.file),
    };
    const integrityMs = options.integrityTimeout * SECOND;
    const findings = await runChecks(
      CHECKS,
      parts,
      { domain, maxDomains: MAX_DOMAINS, integrityMs },
      { signal: new AbortController().signal, onProgress: progress.update },
    );
    progress.clear();
    if (context.json) context.printJson(findings);
    // `runChecks` removes control characters.
    else
      context.printStyled(
        formatFindings(findings, {
          ...tableOptions(),
          all: options.all === true,
          ms: monotonicClock.now() - began,
        }),
      );
    if (countsOf(findings).failure > 0) context.partial();
  } finally {
    progress.clear();
    resolver.close();
    close();
  }
}

const CLEAR_LINE = '\r\u001b[K';

/** One line that shows how many checks have ended. Writes nothing unless the stream is a terminal. */
export function createProgressLine(stream: Pick<NodeJS.WriteStream, 'isTTY' | 'write'>) {
  let isShown = false;
  return {
    update: ({ done, total, title }: Progress) => {
      if (!stream.isTTY) return;
      stream.write(`${CLEAR_LINE}Checked ${done} of ${total}: ${title}`);
      isShown = true;
    },
    clear: () => {
      if (isShown) stream.write(CLEAR_LINE);
      isShown = false;
    },
  };
}
