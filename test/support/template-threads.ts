import { onTestFinished } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import { createTemplateThreads, type TemplateThreads } from '../../src/templates/thread/threads.ts';

/** Threads that are stopped when the test has finished. */
export function templateThreads(): TemplateThreads {
  const threads = createTemplateThreads(createLog({ level: 'silent', hashAddresses: false }));
  onTestFinished(() => threads.stop());
  return threads;
}
