/**
 * Tests in the folder of a module that take more than the module with a database or its own sockets: they start an
 * installation in their process, run programs, start threads and end them by force, flood a server until its limits
 * apply, or compare all combinations of values. Vitest's project `component`.
 */
export const COMPONENT: readonly string[] = [
  // The daemon (support/in-process-daemon.ts), or its API with all modules that serve it.
  'http/api/*.test.ts',
  'http/console/matrix.test.ts',
  'http/console/attacks.test.ts',
  'http/compat/*.test.ts',
  'http/contract.test.ts',
  'http/interface.test.ts',
  'http/reads.test.ts',
  'monitoring/metrics.test.ts',
  'sending/consent-matrix.test.ts',
  'sending/message-cost.test.ts',
  // Programs that use the packed client.
  'clients/*.test.ts',
  // Delivery with its worker threads, a name server and mail servers (delivery/setup.ts).
  'delivery/delivery.test.ts',
  'delivery/warmup-month.test.ts',
  'delivery/holds.test.ts',
  'delivery/jobs.test.ts',
  'delivery/shaping/delivery.test.ts',
  // Installations with everything that is backed up, restored or moved to another machine.
  'backup/create.test.ts',
  'backup/restore.test.ts',
  'transfer/difference.test.ts',
  'transfer/transfer.test.ts',
  // An installation with the external servers that the doctor queries (doctor/setup.ts).
  'doctor/healthy.test.ts',
  'doctor/broken/*.test.ts',
  // Commands of the built program, processes that are killed, and external programs that verify.
  'cli/account.test.ts',
  'cli/audience/contacts.test.ts',
  'cli/locations.test.ts',
  'mail/dkim.test.ts',
  'packaging/manual.test.ts',
  'store/maintenance/integrity.test.ts',
  'store/maintenance/slack.test.ts',
  // Threads that exceed their limits, and a server with the threads behind it.
  'smtp/parser/mail-parser.test.ts',
  'smtp/submission/submission.test.ts',
  'inbound/*.test.ts',
  'store/backup/copy.test.ts',
  'store/readers/pool.test.ts',
  // All combinations: of filters of lists, of damages of messages, of schemas and tables.
  'mail/incoming/hostile.test.ts',
  'store/lists.test.ts',
  'store/plans.test.ts',
  // The built application of the console in a browser, over an installation in the process.
  'console/*.test.ts',
  // Floods.
  'domains/key-queue.test.ts',
  'http/fairness.test.ts',
  'http/unread.test.ts',
  'store/domains/report-shares.test.ts',
];
