/**
 * The URL of a worker-thread program of the built program (support/build.ts): starting one from its TypeScript source
 * takes a second of CPU time. `path` is the file in src/ that it was built from; `after` is code that runs after
 * the import.
 */
export function builtThread(path: string, after = ''): URL {
  const program = new URL(`../../dist/${path.replace(/\.ts$/, '.js')}`, import.meta.url);
  if (after === '') return program;
  const code = `await import(${JSON.stringify(program.href)});\n${after}`;
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}
