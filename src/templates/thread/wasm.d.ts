/** A file that the bundler includes. */
declare module '*.wasm' {
  const bytes: Uint8Array<ArrayBuffer>;
  export default bytes;
}

declare module 'mrml/bundler/mrml_wasm_bg.js' {
  export { Engine } from 'mrml';
  export function __wbg_set_wasm(instance: WebAssembly.Exports): void;
}

/** What the types of Node lack. */
declare namespace WebAssembly {
  const Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  const Instance: new (
    module: object,
    imports: Readonly<Record<string, unknown>>,
  ) => { readonly exports: Exports };
  type Exports = Readonly<Record<string, unknown>>;
}
