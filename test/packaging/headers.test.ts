import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { correctHeaders } from '../../.packaging/native.ts';

/** Returns the header after the correction. */
function corrected(text: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-headers-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'node_object_wrap.h');
  writeFileSync(file, text);
  correctHeaders(file);
  return readFileSync(file, 'utf8');
}

const CONSTRUCTOR = '  ObjectWrap() {\n    refs_ = 0;\n';
const DESTRUCTOR = '  virtual ~ObjectWrap() {\n';
const FUNCTIONS = '  void AddCleanupHook() {}\n  void RemoveCleanupHook() {}\n';

describe('the headers that the SQLite module is compiled with', () => {
  it('have no cleanup hooks of ObjectWrap', () => {
    const hooked = `${CONSTRUCTOR}    AddCleanupHook();\n  }\n${DESTRUCTOR}    RemoveCleanupHook();\n  }\n${FUNCTIONS}`;
    expect(corrected(hooked)).toBe(`${CONSTRUCTOR}  }\n${DESTRUCTOR}  }\n${FUNCTIONS}`);
  });

  it('are unchanged without hooks', () => {
    const text = `${CONSTRUCTOR}  }\n${DESTRUCTOR}  }\n`;
    expect(corrected(text)).toBe(text);
  });

  it('are refused when the hooks are called elsewhere', () => {
    expect(() => corrected(`${CONSTRUCTOR}    AddCleanupHook();\n  }\n`)).toThrow(
      '1 calls of cleanup hooks, not 2: adapt .packaging/native.ts',
    );
  });
});
