import { rmSync } from 'node:fs';
import { chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * What a benchmark has started: stopped, with all temporary files removed, whether the benchmark succeeds or fails. Temporary
 * directories of other modules are created in its directory, too.
 */
export interface Resources {
  /** Starts a resource. Throws after `release` was called. */
  start<Started extends Resource>(start: () => Promise<Started>): Promise<Started>;
  /** Stops a resource before the end. Throws for one that `start` has not returned, or that was stopped. */
  stop(resource: Resource): Promise<void>;
  /** Waits for pending starts, stops everything in reverse order, and exits the process. */
  release(): Promise<never>;
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
  let released = false;
  return {
    start: async (start) => {
      if (released) throw new Error('the benchmark has ended');
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
    release: async () => {
      released = true;
      await Promise.allSettled(starting);
      for (const resource of resources.toReversed())
        await resource.stop().catch((error: unknown) => console.error(error));
      // Registered last: other modules clean up on exit, too.
      process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
      process.exit();
    },
  };
}
