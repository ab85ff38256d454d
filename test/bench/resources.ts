import { rmSync } from 'node:fs';
import { chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * What a benchmark has started, and its end: every process is stopped and every file gone, however it ends. All
 * temporary folders, those of other parts as well, are made in one of its own.
 */
export interface Stage {
  /** Starts a part. Once the stage is being cleared nothing more is started. */
  use<Started extends Part>(start: () => Promise<Started>): Promise<Started>;
  /** Stops a part before the end. */
  remove(part: Part): Promise<void>;
  /** Waits for starts under way, stops everything, the latest first, and ends the process. */
  clear(): Promise<never>;
}

interface Part {
  stop(): Promise<void>;
}

/** Moves this process's temporary folder: to be called before anything makes one. */
export async function setStage(): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-bench-'));
  // A mail server's own user must get through to what is its.
  await chmod(folder, 0o755);
  process.env['TMPDIR'] = folder;
  const parts: Part[] = [];
  const starting = new Set<Promise<unknown>>();
  let clearing = false;
  return {
    use: async (start) => {
      if (clearing) throw new Error('the benchmark is over');
      const begun = start().then((part) => {
        parts.push(part);
        return part;
      });
      starting.add(begun);
      return begun.finally(() => starting.delete(begun));
    },
    remove: async (part) => {
      parts.splice(parts.indexOf(part), 1);
      await part.stop();
    },
    clear: async () => {
      clearing = true;
      await Promise.allSettled(starting);
      for (const part of parts.toReversed())
        await part.stop().catch((error: unknown) => console.error(error));
      // Last of all, after what other parts leave to the end of this process.
      process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
      process.exit();
    },
  };
}
