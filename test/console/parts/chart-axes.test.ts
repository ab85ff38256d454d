import { expect, it } from 'vitest';
import { axesOf } from '../../../src/console/parts/chart/chart-axes.ts';

const HOUR_SECONDS = 3600;

it('labels the first hour and each new day with the day, also on 1 January', () => {
  const start = new Date(2026, 0, 1, 22).getTime() / 1000;
  const marks = [0, 1, 2, 3].map((hours) => start + hours * HOUR_SECONDS);
  const days = axesOf('en-US', 'hour')
    .times(marks)
    .map((label) => label.split('\n')[1]);
  expect(days).toEqual(['Jan 1', undefined, 'Jan 2', undefined]);
});
