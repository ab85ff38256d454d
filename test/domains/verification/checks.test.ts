import { expect, it } from 'vitest';
import { CHECK_NAMES, checkOf } from '../../../src/domains/verification/checks.ts';
import { CHECK_COLUMNS } from '../../../src/store/domains/domains.ts';

const checks = CHECK_NAMES.map(checkOf);

it('gives each column to exactly one check', () => {
  const columns = checks.flatMap(({ flag }) => flag?.column ?? []);
  expect(columns.toSorted()).toEqual(CHECK_COLUMNS.toSorted());
});

it('gives each required record a different position, from 1', () => {
  const positions = checks.flatMap(({ record }) => record?.position || []);
  expect(positions.toSorted((one, two) => one - two)).toEqual(positions.map((_, index) => index + 1));
});
