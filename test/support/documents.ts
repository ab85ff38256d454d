/**
 * Which test runs the blocks of which documents, in the order in which they continue each other. `documents.test.ts`
 * fails for a document with blocks that no test runs.
 */
export const DOCUMENTS = {
  'test/e2e/docs.long.test.ts': [
    'docs/first-message.md',
    'docs/dns-setup.md',
    'docs/smtp-submission.md',
    'docs/clients.md',
    'docs/reference/programs.md',
    'docs/reference/frameworks.md',
    'docs/webhooks.md',
    'docs/reference/signatures.md',
    'docs/deliverability.md',
    'docs/limits.md',
    'docs/security.md',
    'docs/faq.md',
  ],
  'test/e2e/docs-topics.long.test.ts': [
    'docs/tls-policy.md',
    'docs/delivery.md',
    'docs/egress.md',
    'docs/public-pages.md',
    'docs/incoming-mail.md',
    'docs/campaigns.md',
    'docs/reputation.md',
    'docs/queue.md',
    'docs/console.md',
    'docs/reference/console-access.md',
    'docs/troubleshooting.md',
  ],
  'test/e2e/docs-setup.long.test.ts': ['docs/configuration.md'],
  'test/e2e/docs-backup.long.test.ts': ['docs/backup.md'],
  'test/e2e/docs-lost-master-key.long.test.ts': ['docs/lost-master-key.md'],
  'test/e2e/docs-operations.long.test.ts': [
    'docs/operations.md',
    'docs/reference/large-databases.md',
    'docs/monitoring.md',
    'docs/upgrade.md',
  ],
  'test/e2e/scaling.long.test.ts': ['docs/scaling.md', 'docs/reference/load-balancers.md'],
  'test/e2e/instances.long.test.ts': ['docs/reference/several-daemons.md'],
  'test/e2e/install.long.test.ts': ['docs/install.md'],
} as const;
