import { expect, it } from 'vitest';
import { readProgramFile } from '../../src/config/program-file.ts';

it('a missing file is named', () => {
  expect(() => readProgramFile('missing.toml')).toThrow(/config\/missing\.toml cannot be read/);
});
