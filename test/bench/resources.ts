import { rmSync } from 'node:fs';
import { chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * The processes and servers that a benchmark has started. They are stopped and all temporary files are removed, whether the
 * benchmark succeeds or fails. Temporary directories of other modules are created in its directory, too.
 */
export interface Resources {
  /** Starts a resource. Throws after the benchmark has ended. */
  start<Started extends Resource>(start: () => Promise<Started>): Promise<Started>;
  /** Stops a resource before the end. Throws for one that `start` has not returned, or that was stopped. */
  stop(resource: Resource): Promise<void>;
  /**
   * Runs the benchmark, waits for pending starts, stops everything in reverse order, and exits the process: with 0 if
   * `bench` resolves with true, otherwise with 1. SIGINT, SIGTERM and the end of `limitSeconds` make the benchmark fail.
   */
  run(bench: () => Promise<boolean>, options?: { limitSeconds?: number }): Promise<never>;
}

interface Resource {
  stop(): Promise<void>;
}

/** Changes this process's TMPDIR: call it before anything creates a temporary directory. */
export async function createResources(): Promise<Resources> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-bench-'));
  // Postfix runs under its own user.
  await chmod(folder, 0o755);
  process.env['TMPDIR'] = folder;
  const resources: Resource[] = [];
  const starting = new Set<Promise<unknown>>();
  let ended = false;
  return {
    start: async (start) => {
      if (ended) throw new Error('the benchmark has ended');
      const started = start().then((resource) => {
        resources.push(resource);
        return resource;
      });
      starting.add(started);
      return started.finally(() => starting.delete(started));
    },
    stop: async (resource) => {
      const index = resources.indexOf(resource);
      if (index === -1) throw new Error('the resource was not started here, or has been stopped');
      resources.splice(index, 1);
      await resource.stop();
    },
    run: async (bench, options = {}) => {
      try {
        process.exitCode = (await Promise.race([bench(), interruption(options.limitSeconds)])) ? 0 : 1;
      } catch (error) {
        console.error(error);
        process.exitCode = 1;
      }
      ended = true;
      await Promise.allSettled(starting);
      for (const resource of resources.toReversed())
        await resource.stop().catch((error: unknown) => console.error(error));
      // Registered last: other modules clean up on exit, too.
      process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
      process.exit();
    },
  };
}

/** Rejects on SIGINT, on SIGTERM and after `limitSeconds`. */
function interruption(limitSeconds: number | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const interrupt = (reason: string) => () => reject(new Error(reason));
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt(signal));
    if (limitSeconds === undefined) return;
    const limit = interrupt(`the time limit of ${limitSeconds} s is exceeded`);
    setTimeout(limit, limitSeconds * 1000).unref();
  });
}
