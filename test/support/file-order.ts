import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The order of the test files of a run. The projects follow one another in one pool, because a process that changes
 * between projects is started again. Those of the built program come first: they wait more than they compute, so that the
 * files of two projects that run at the same time use all cores. The last project has the shortest files, which end at
 * about the same time in all processes. In each project the files that take longest begin first. Vitest itself knows
 * durations only from an earlier run in the same folder, which CI does not have.
 */
export class FilesOfProjects extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => projectRank(a) - projectRank(b) || fileRank(a) - fileRank(b));
  }
}

const PROJECTS = ['long', 'e2e', 'component', 'scenarios', 'unit', 'console', 'serial'];

/** Files of the built program that take more than 15 s, and others that take more than 5 s, the longest of each project first. */
const LONGEST = [
  'e2e/package',
  'e2e/install',
  'e2e/containers',
  'e2e/source',
  'e2e/large-history',
  'chaos/short',
  'chaos/soak',
  'e2e/damaged-data',
  'e2e/queue-control',
  'e2e/incoming-bounces',
  'e2e/retry',
  'e2e/reload',
  'e2e/operator',
  'e2e/init',
  'e2e/silent-name-servers',
  'e2e/secondary-lane',
  'e2e/certificates',
  'e2e/stop',
  'e2e/scaling',
  'e2e/held-messages',
  'smtp/mx/hostile',
  'console/smoke',
  'delivery/delivery',
  'smtp/mx/report-floods',
  'smtp/submission/submission',
  'http/contract',
  'smtp/parser/mail-parser',
  'http/unread',
  'doctor/healthy',
  'monitoring/metrics',
  'delivery/holds',
  'delivery/warmup-month',
  'store/plans',
  'scenarios/explanations',
  'scenarios/postfix',
  'scenarios/retries',
  'scenarios/connections',
  'scenarios/sites',
  'scenarios/replies',
  'scenarios/limits',
  'scenarios/lookups',
  'scenarios/malformed',
  'scenarios/tls',
  'delivery/worker/timeouts',
  'campaigns/run',
  'webhooks/call',
  'dns/exchange',
  'delivery/mta-sts',
  'http/body/body',
  'smtp/mx/verified-reports',
  'http/upload',
  'smtp/mx/mx',
  'webhooks/sender',
  'domains/verification/verify',
];

function projectRank({ project }: TestSpecification): number {
  return PROJECTS.indexOf(project.name);
}

function fileRank({ moduleId }: TestSpecification): number {
  const name = moduleId.replace(/(\.long)?\.test\.ts$/, '');
  const index = LONGEST.findIndex((file) => name.endsWith(`/${file}`));
  return index === -1 ? LONGEST.length : index;
}
