/**
 * Which test runs the blocks of which documents, in the order in which they continue each other. `docs.test.ts` fails for
 * a document with blocks that no test runs.
 */
export const DOCUMENTS = {
  'test/e2e/docs.test.ts': [
    'docs/first-message.md',
    'docs/dns-setup.md',
    'docs/clients.md',
    'docs/webhooks.md',
    'docs/deliverability.md',
    'docs/limits.md',
    'docs/security.md',
    'docs/faq.md',
  ],
} as const;
