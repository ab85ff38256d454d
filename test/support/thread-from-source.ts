/**
 * The program of a thread, run from its source: Node 20 gives threads no `--import`, so the thread itself has to
 * register the TypeScript loader first. `path` is relative to src/; `after` is code that runs when it is ready.
 */
export function threadFromSource(path: string, after = ''): URL {
  const program = new URL(`../../src/${path}`, import.meta.url).href;
  const code = `import { register } from ${JSON.stringify(import.meta.resolve('tsx/esm/api'))};
register();
await import(${JSON.stringify(program)});
${after}`;
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}
