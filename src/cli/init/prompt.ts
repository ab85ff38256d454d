import { createInterface } from 'node:readline/promises';

/** A question of `init`. */
export interface InitQuestion {
  /** The option of the command line with the same value. */
  option: string;
  text: string;
  /** Printed before the question: what the value is used for, one line. */
  reason: string;
  /** Null: an answer is required. '': the question is optional. */
  fallback: string | null;
  /** What is wrong with an answer; null: it is valid. */
  check?(answer: string): string | null;
}

export interface Prompt {
  /** Resolves with a valid answer, trimmed. Rejects with Interrupted when the user ends the dialog. */
  ask(question: InitQuestion): Promise<string>;
  close(): void;
}

/** The user ended the dialog with Ctrl-C or Ctrl-D. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/**
 * Asks on a terminal, line by line: works in every terminal and with screen readers, needs no library, and can be
 * driven by expect(1).
 */
export function terminalPrompt(input: NodeJS.ReadStream, output: NodeJS.WriteStream): Prompt {
  const terminal = createInterface({ input, output });
  const ended = new AbortController();
  terminal.on('SIGINT', () => ended.abort());
  terminal.on('close', () => ended.abort());

  async function line(text: string): Promise<string> {
    try {
      ended.signal.throwIfAborted();
      return (await terminal.question(text, { signal: ended.signal })).trim();
    } catch (error) {
      if (ended.signal.aborted) throw new Interrupted('interrupted', { cause: error });
      throw error;
    }
  }

  return {
    ask: async ({ text, reason, fallback, check }) => {
      const hint = fallback === null ? '' : fallback === '' ? ' (optional)' : ` [${fallback}]`;
      output.write(`\n${reason}\n`);
      for (;;) {
        const given = await line(`${text}${hint}: `);
        const answer = given === '' ? fallback : given;
        const fault =
          answer === null ? 'an answer is required' : answer === '' ? null : (check?.(answer) ?? null);
        if (answer !== null && fault === null) return answer;
        output.write(`  ${answer ?? ''}${answer === null ? '' : ': '}${fault}\n`);
      }
    },
    close: () => terminal.close(),
  };
}

/** A prompt without a terminal, which answers with defaults. */
export interface SilentPrompt extends Prompt {
  /** Options of the questions that have no answer. */
  missing(): string[];
}

/** `acceptDefaults`: --yes. Without it only optional questions have an answer. */
export function silentPrompt(acceptDefaults: boolean): SilentPrompt {
  const missing: string[] = [];
  return {
    ask: async ({ option, fallback }) => {
      if (acceptDefaults && fallback !== null) return fallback;
      if (fallback !== '') missing.push(option);
      return fallback ?? '';
    },
    close: () => {},
    missing: () => [...missing],
  };
}
