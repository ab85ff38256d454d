import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { defaultConnections, openFilesLimit } from '../../src/delivery/limits.ts';
import { temporaryDir } from '../support/store.ts';

describe('sessions at once by default', () => {
  it.each([
    [null, 500],
    [1_048_576, 500],
    [2064, 500],
    [1024, 240],
    [256, 48],
    [64, 1],
    [10, 1],
  ])('with %s open files: %s', (files, connections) => {
    expect(defaultConnections(files)).toBe(connections);
  });
});

describe('the limit of open files', () => {
  const read = (text: string) => {
    const file = join(temporaryDir(), 'limits');
    writeFileSync(file, text);
    return openFilesLimit(file);
  };
  it('is the soft one', () => {
    expect(
      read(
        'Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1024                 4096                 files     \n',
      ),
    ).toBe(1024);
  });
  it('is none where the system sets none or does not say', () => {
    expect(read('Max open files            unlimited            unlimited            files\n')).toBeNull();
    expect(read('')).toBeNull();
    expect(openFilesLimit('/nowhere/limits')).toBeNull();
  });
});
