/*
 * Which test files are not ordinary tests of their folder, and why. Paths are relative to test/. `npm test` runs all but
 * LONG and SERIAL; `npm run test:all`, and `npm test` with CI set, run everything.
 */

const PAGES = 'opens its pages of the console on a phone and a desktop, light and dark';

/**
 * System tests whose subject is a load, kills and failures of the daemon, a large database, several installations or
 * another operating system: they start many processes or take up to several minutes, with the reason. Vitest's project
 * `long`.
 */
export const LONG: Readonly<Record<string, string>> = {
  'e2e/package.test.ts': 'compiles the packages and installs them on a Debian system that it boots',
  'e2e/install.test.ts': 'runs the commands of the installation on a Debian system that it boots',
  'e2e/source.test.ts': 'installs all libraries and builds the program on a machine without a compiler',
  'chaos/short.test.ts': 'runs a scenario of each family of faults and abuse under load',
  'e2e/large-history.test.ts': 'builds a database with a large history and reads every list of it',
  'e2e/console-pages.test.ts': 'opens every page of the console over a database with a history',
  'e2e/damaged-data.test.ts': 'waits for the grace period of a stop whose results cannot be recorded',
  'e2e/power-loss.test.ts': 'checks the database after a power failure at 140 moments of a run',
  'e2e/restore-campaign.test.ts': 'restores a backup of a campaign to thousands of recipients',
  'e2e/kill.test.ts': 'kills the daemon while 16 senders repeat their requests',
  'e2e/kill-at-outcome.test.ts': 'kills the daemon at chosen moments of a delivery',
  'e2e/incoming-bounces-kill.test.ts': 'kills the daemon while it receives a stream of bounces',
  'e2e/held-messages.test.ts': 'kills the daemon while an account with a full queue is disabled and enabled',
  'e2e/stop.test.ts': 'stops the daemon under load, with deliveries that do not end',
  'e2e/storage-errors.test.ts': 'locks the database and fills the disk of running daemons',
  'e2e/force-generation.test.ts': 'starts two daemons with copies of one database in turns',
  'e2e/scaling.test.ts': 'runs two daemons behind a load balancer and moves an account between them',
  'e2e/certificates.test.ts': 'orders and renews certificates across restarts and an outage of the authority',
  'e2e/retry.test.ts': 'waits for the intervals between attempts',
  'e2e/queue-control.test.ts': 'runs every command of the queue while mail is delivered, across kills',
  'e2e/import-kill.test.ts': 'kills the daemon several times during an import of thousands of contacts',
  'e2e/campaign-kill.test.ts': 'kills the daemon several times during a campaign to thousands of recipients',
  'e2e/backup.test.ts': 'backs up, restores and takes over while mail is sent',
  'e2e/docs.test.ts': 'runs the commands of documents, with clients in eight languages',
  'e2e/docs-backup.test.ts': 'runs the commands of a document, with a standby by Litestream',
  'e2e/docs-operations.test.ts': 'runs the commands of documents, each on a new installation',
  'e2e/docs-setup.test.ts': 'runs the commands of documents, each on a new installation',
  'e2e/docs-topics.test.ts': 'runs the commands of documents, each on a new installation',
  'e2e/idempotency.test.ts': 'repeats each request across kills',
  'e2e/spam-filters.test.ts': 'starts SpamAssassin and Rspamd, which load all their rules',
  'console/campaigns.test.ts': PAGES,
  'console/contacts.test.ts': PAGES,
  'console/domains.test.ts': PAGES,
  'console/event-stream.test.ts': 'opens many tabs of the console, twice',
  'console/first-use.test.ts': 'follows the path of the first use in a browser',
  'console/groups.test.ts': PAGES,
  'console/hostile-data.test.ts': 'opens every page of the console',
  'console/inbox.test.ts': PAGES,
  'console/api.test.ts': PAGES,
  'console/keys.test.ts': PAGES,
  'console/main-tasks.test.ts':
    'does the main task of every page of the console with four combinations of input and window',
  'console/oidc.test.ts': 'signs in at an identity provider in a browser',
  'console/overview.test.ts': PAGES,
  'console/parts-page.test.ts': 'builds the page of the parts of the console',
  'console/people.test.ts': PAGES,
  'console/queue.test.ts': PAGES,
  'console/reports.test.ts': PAGES,
  'console/shell.test.ts': PAGES,
  'console/shortcuts.test.ts': PAGES,
  'console/system-facts.test.ts': PAGES,
  'console/system.test.ts': PAGES,
  'console/templates.test.ts': PAGES,
  'console/webhooks.test.ts': PAGES,
};

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
  'http/contract.test.ts',
  'http/interface.test.ts',
  'http/reads.test.ts',
  'monitoring/metrics.test.ts',
  'sending/consent-matrix.test.ts',
  'sending/message-cost.test.ts',
  // Delivery with its worker threads, a name server and mail servers (delivery/setup.ts).
  'delivery/delivery.test.ts',
  'delivery/warmup-month.test.ts',
  'delivery/holds.test.ts',
  'delivery/jobs.test.ts',
  'delivery/shaping/delivery.test.ts',
  // Installations with everything that is backed up, restored or moved to another machine.
  'backup/create.test.ts',
  'backup/restore.test.ts',
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
  'store/migrate/oldest-schema.test.ts',
  'store/migrate/rebuild.test.ts',
  // Threads that exceed their limits, and a server with the threads behind it.
  'smtp/parser/mail-parser.test.ts',
  'smtp/submission/submission.test.ts',
  'store/backup/copy.test.ts',
  'store/readers/pool.test.ts',
  // All combinations: of filters of lists, of damages of messages, of schemas and tables.
  'mail/incoming/hostile.test.ts',
  'store/lists.test.ts',
  'store/messages/compact-rows.test.ts',
  'store/plans.test.ts',
  // The built application of the console in a browser, over an installation in the process.
  'console/*.test.ts',
  // Floods.
  'domains/key-queue.test.ts',
  'http/fairness.test.ts',
  'http/unread.test.ts',
  'smtp/mx/hostile.test.ts',
  'smtp/mx/report-floods.test.ts',
  'store/domains/report-shares.test.ts',
];

/** As LONG, but one file at a time, after all others: they compare durations or CPU time. Vitest's project `serial`. */
export const SERIAL: Readonly<Record<string, string>> = {
  'e2e/event-loop.test.ts': 'compares the turns of the event loop under the largest requests',
};
