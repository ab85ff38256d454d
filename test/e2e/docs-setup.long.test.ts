// Long: runs the commands of documents, each on a new installation.
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CodeBlock } from '../support/documentation.ts';
import { DOCUMENTS } from '../support/documents.ts';
import { type Reader, startReader } from '../support/reader.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { runOnTerminal } from '../support/terminal.ts';

/*
 * Documents that begin with `postrider init` in an empty directory, answered on a terminal.
 */
const required = requirePrograms('curl', 'jq', 'python3', 'terminal');
const POSTAL = '1 High Street, Sampletown, AB1 2CD, GB';
/** Host name, public address, data, API, MX, submission, TLS, account, company, address, domain; '' is the default. */
const ANSWERS = [
  'mail.example.net',
  '192.0.2.25',
  '',
  '',
  '',
  '',
  'none',
  'Shop',
  'Shop Ltd',
  POSTAL,
  '',
  '',
];

describe.skipIf(required.missing)(`the commands of the setup${required.reason}`, () => {
  let reader: Reader;
  /** Readers in other empty directories. */
  const others: Reader[] = [];
  beforeEach(async () => {
    reader = await startReader();
  });
  afterEach(() => reader?.close());
  afterAll(async () => {
    for (const other of others) await other.close();
  });

  /** Runs `init` on a terminal, and what follows it in the block. */
  async function answer(block: CodeBlock): Promise<boolean> {
    if (block.kind !== 'command') return false;
    const [first = '', ...rest] = block.text.split('\n');
    const command = first.replace(/ +#.*/, '');
    if (command.includes('init --yes')) {
      const other = await startReader();
      others.push(other);
      await other.run(other.adapted(block.text));
      return true;
    }
    if (/^(?:npx )?postrider init$/.test(command)) {
      const { status, shown } = await runOnTerminal(command.split(' '), ANSWERS, {
        cwd: reader.dir,
        env: reader.env,
      });
      expect(status, shown).toBe(0);
      expect(shown).toContain('Next:');
      for (const line of rest) if (line.trim() === 'npx postrider serve') await reader.serve();
      return true;
    }
    // The document assumes that the service runs.
    if (command.startsWith('postrider config check')) await reader.serve();
    return false;
  }

  for (const document of DOCUMENTS['test/e2e/docs-setup.long.test.ts']) {
    it(`of ${document} work as written`, () => reader.follow(document, answer));
  }
});
