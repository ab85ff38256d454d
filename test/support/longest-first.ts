import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The order of the test files of a project: as Vitest orders them, except that the e2e files that take longest begin
 * first, because the last file of a parallel run determines its end. Vitest itself knows durations only from an earlier run
 * in the same folder, which CI does not have.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

const LONGEST = [
  'package',
  'damaged-data',
  'large-history',
  'campaign-kill',
  'incoming-bounces',
  'certificates',
  'idempotency',
  'operator',
  'retry',
  'scaling',
].map((name) => `/e2e/${name}.test.ts`);

function rank({ moduleId }: TestSpecification): number {
  const index = LONGEST.findIndex((file) => moduleId.endsWith(file));
  return index === -1 ? LONGEST.length : index;
}
