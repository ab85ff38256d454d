/**
 * The URL of the program of a thread or a child process, by its path in the sources without extension. It is always that of the
 * built program, also when this module is run from its source.
 */
export function builtProgram(path: string): URL {
  return new URL(`../../dist/${path}.js`, import.meta.url);
}
