/**
 * The program of a thread, run from its source: Node 20 gives threads no `--import`, so the thread itself has to
 * register the TypeScript loader first. `path` is relative to src/.
 */
export function threadFromSource(path: string): URL {
  const program = new URL(`../../src/${path}`, import.meta.url).href;
  const code = `import { register } from ${JSON.stringify(import.meta.resolve('tsx/esm/api'))};
register();
await import(${JSON.stringify(program)});`;
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}
