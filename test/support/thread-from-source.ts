/**
 * The URL of a worker-thread program that runs from its TypeScript source: Node 20 does not pass `--import` to
 * threads, so the program registers the loader itself. `path` is relative to src/; `after` is code that runs
 * after the import.
 */
export function threadFromSource(path: string, after = ''): URL {
  const program = new URL(`../../src/${path}`, import.meta.url).href;
  const code = `import { register } from ${JSON.stringify(import.meta.resolve('tsx/esm/api'))};
register();
await import(${JSON.stringify(program)});
${after}`;
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}
