/**
 * The delivery worker's program from its source, for threads of this process. Node 20 gives threads no `--import`:
 * the thread itself has to learn TypeScript first. `after` is code that it runs when it is ready.
 */
export function workerFromSource(after = ''): URL {
  const program = new URL('../../src/delivery/worker/main.ts', import.meta.url).href;
  const code = `import { register } from ${JSON.stringify(import.meta.resolve('tsx/esm/api'))};
register();
await import(${JSON.stringify(program)});
${after}`;
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}
