import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The order of the test files of a project: as Vitest orders them, except that the files that take longest begin
 * first, because the last file of a parallel run determines its end. Vitest itself knows durations only from an earlier run
 * in the same folder, which CI does not have.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

const LONGEST = [
  'chaos/short',
  'e2e/package',
  'e2e/damaged-data',
  'e2e/large-history',
  'e2e/campaign-kill',
  'e2e/incoming-bounces',
  'e2e/certificates',
  'e2e/idempotency',
  'e2e/operator',
  'e2e/retry',
  'e2e/scaling',
  'smtp/submission/submission',
  'smtp/mx/hostile',
  'campaigns/run',
  'delivery/delivery',
  'http/contract',
].map((name) => `/${name}.test.ts`);

function rank({ moduleId }: TestSpecification): number {
  const index = LONGEST.findIndex((file) => moduleId.endsWith(file));
  return index === -1 ? LONGEST.length : index;
}
