import { randomBytes } from 'node:crypto';
import type { Engine } from 'mrml';
import * as glue from 'mrml/bundler/mrml_wasm_bg.js';
import bytes from 'mrml/bundler/mrml_wasm_bg.wasm';
import { type Compiled, checkMjml, type MjmlFault, protectBraces } from '../../mail/mjml.ts';

/*
 * Compiles MJML to HTML with mrml, a port of MJML to WebAssembly: one package without dependencies, whose memory is separate and
 * bounded, and which has no access to files. MJML itself would add 200 packages, most of them of minifiers.
 */

/** Pages of 64 KiB that the compiler may use. */
const MAX_MEMORY_PAGES = 2048;
/** Characters of the HTML: attributes that are set for all elements are repeated in each. */
const MAX_COMPILED = 1024 * 1024;

let engine: Engine | null = null;

/** Compiles a source. Throws when the compiler fails: it cannot be used after that. */
export function compileMjml(source: string): Compiled {
  const faults = checkMjml(source);
  if (faults.length > 0) return { faults };
  engine ??= startEngine();
  const { source: safe, restore } = protectBraces(source, `q${randomBytes(6).toString('hex')}z`);
  const result = engine.toHtml(safe);
  if (result.type === 'success') {
    if (result.content.length <= MAX_COMPILED) return { html: restore(result.content) };
    return {
      faults: [
        { line: 0, element: null, message: `must result in at most ${MAX_COMPILED} characters of HTML` },
      ],
    };
  }
  return { faults: [faultOf(result, safe)] };
}

type Failed = Extract<ReturnType<Engine['toHtml']>, { type: 'error' }>;

/** Errors name a position in the source, or the line and column in a text. */
function faultOf(failed: Failed, source: string): MjmlFault {
  const { message } = failed;
  if (failed.origin !== 'parser') return { line: 0, element: null, message };
  const { details } = failed;
  if ('position' in details) {
    const { start, end } = details.position;
    // Offsets in UTF-8.
    const before = Buffer.from(source).subarray(0, start).toString();
    const element = Buffer.from(source).subarray(start, end).toString().trim().slice(0, 60);
    return { line: before.split('\n').length, element, message: KINDS[details.type] ?? message };
  }
  if (details.type === 'parser-error') {
    const place = /^(.{1,200}?) at (\d+):(\d+)(?: cause (.{1,100}))?$/.exec(details.source);
    if (place === null) return { line: 0, element: null, message: details.source.slice(0, 200) };
    const cause = place[4] === undefined ? '' : `: ${place[4]}`;
    return { line: Number(place[2]), element: null, message: `${place[1]}${cause} (column ${place[3]})` };
  }
  return { line: 0, element: null, message: KINDS[details.type] ?? message };
}

const KINDS: Readonly<Record<string, string>> = {
  'unexpected-element': 'is not allowed here',
  'unexpected-token': 'is not allowed here',
  'missing-attribute': 'lacks an attribute',
  'invalid-attribute': 'has an invalid attribute',
  'invalid-format': 'is not valid',
  'end-of-stream': 'an element is not closed',
  'size-limit': 'is too large',
  'no-root-node': 'must have an element mjml',
};

function startEngine(): Engine {
  const imports = { './mrml_wasm_bg.js': glue };
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(withMemoryLimit(bytes)), imports);
  glue.__wbg_set_wasm(exports);
  const start = exports['__wbindgen_start'];
  if (typeof start === 'function') start();
  return new glue.Engine();
}

const MEMORY_SECTION = 5;

/** The module with a limit of its memory (WebAssembly Core 1.0, section 5.5.8), which it does not have. */
function withMemoryLimit(module: Uint8Array): Uint8Array<ArrayBuffer> {
  let at = 8;
  while (at < module.length) {
    const [size, body] = readNumber(module, at + 1);
    if (module[at] !== MEMORY_SECTION) {
      at = body + size;
      continue;
    }
    const [pages] = readNumber(module, body + 2);
    if (module[body] !== 1 || module[body + 1] !== 0)
      throw new Error('the memory of the module is not as expected');
    const section = [1, 1, ...numberBytes(pages), ...numberBytes(MAX_MEMORY_PAGES)];
    return Uint8Array.from([
      ...module.subarray(0, at),
      MEMORY_SECTION,
      ...numberBytes(section.length),
      ...section,
      ...module.subarray(body + size),
    ]);
  }
  throw new Error('the module has no memory');
}

/** An unsigned LEB128 number, and the position after it. */
function readNumber(from: Uint8Array, start: number): [value: number, end: number] {
  let value = 0;
  for (let at = start, shift = 0; ; at++, shift += 7) {
    const byte = from[at] ?? 0;
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return [value, at + 1];
  }
}

function numberBytes(value: number): number[] {
  const bytes = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest % 128) + 128);
  }
}
