import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openFilesLimit, requireOpenFiles } from '../../src/core/open-files.ts';
import { temporaryDir } from '../support/store.ts';

describe('too few open files', () => {
  it.each([255, 64, 0])('%s are refused with the setting that raises the limit', (limit) => {
    expect(() => requireOpenFiles(limit)).toThrow(
      /^This process may have \d+ open files, .* LimitNOFILE=65536/,
    );
  });
  it.each([256, 1024, null])('%s are accepted', (limit) => {
    expect(() => requireOpenFiles(limit)).not.toThrow();
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
  it('is null if the system sets none or does not report it', () => {
    expect(read('Max open files            unlimited            unlimited            files\n')).toBeNull();
    expect(read('')).toBeNull();
    expect(openFilesLimit('/nowhere/limits')).toBeNull();
  });
});
