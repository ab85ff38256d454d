import type { SequenceStep } from '../../../src/audience/sequences/definition.ts';
import { DAY } from '../../../src/core/clock.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import type { Unit, Writer } from '../../../src/store/database/writer.ts';
import { seededNumbers } from '../../support/seeded-numbers.ts';
import { message, OWNER, startSequences } from './setup.ts';

/*
 * A process that ends at any moment. Its state is its memory and the units of work that it runs: a crash lets one of them
 * not run, be rolled back, or be committed without the process learning of it; nothing of the process runs after that.
 */

const EVENT = 'bought';
const CONTACTS = 12;

/** Ends the process at a unit of work, with a probability. */
class Crash extends Error {}

function mortalWriter(writer: Writer, random: () => number, probability: number) {
  let isDead = false;
  let die: () => void = () => {};
  const death = new Promise<'crashed'>((resolve) => {
    die = () => {
      isDead = true;
      resolve('crashed');
    };
  });
  const never = () => new Promise<never>(() => {});
  const run = async <T>(unit: Unit<T>, share?: string): Promise<T> => {
    if (isDead) return never();
    const fate = random() < probability ? Math.floor(random() * 3) : null;
    if (fate === 0) {
      die();
      return never();
    }
    try {
      const result = await writer.run((tx) => {
        // Units of a process that has ended do not run.
        if (isDead) throw new Crash();
        const value = unit(tx);
        if (fate !== 1) return value;
        die();
        throw new Crash();
      }, share);
      if (fate === 2) die();
      return isDead ? await never() : result;
    } catch (error) {
      if (error instanceof Crash) return never();
      throw error;
    }
  };
  return { writer: { run } as Pick<Writer, 'run'>, death };
}

/** Steps with 2 to 4 messages, and waits and conditions between them. */
function randomSteps(random: () => number): SequenceStep[] {
  const steps: SequenceStep[] = [];
  const messages = 2 + Math.floor(random() * 3);
  for (let n = 0; n < messages; n++) {
    if (random() < 0.6) steps.push({ wait: `${1 + Math.floor(random() * 3)}d` });
    if (random() < 0.4)
      steps.push({
        when: { field: 'customFields.number', op: 'lessThan', value: Math.floor(random() * CONTACTS) },
        otherwise: random() < 0.3 ? 'end' : 'skip',
      });
    steps.push(message(`Message ${n}`));
  }
  return steps;
}

/** The subjects that a contact receives. */
function expectedOf(steps: readonly SequenceStep[], number: number): string[] {
  const subjects: string[] = [];
  for (let at = 0; at < steps.length; at++) {
    const { send, when, otherwise } = steps[at] ?? {};
    if (send?.subject !== undefined) subjects.push(send.subject);
    if (when === undefined || number < Number(when.value)) continue;
    if (otherwise === 'end') break;
    at++;
  }
  return subjects;
}

/**
 * Sends a random sequence to some contacts, in processes that crash, until everybody has left it. Returns the crashes, and
 * what each contact received and should have received.
 */
export async function sendWithCrashes(random: () => number) {
  const setup = await startSequences();
  const { clock, db, sequences, tables, sent } = setup;
  // The machine does not crash: what a process has committed stays.
  db.pragma('synchronous = OFF');
  const steps = randomSteps(random);
  const row = await setup.active({ trigger: { event: EVENT }, steps });
  const emails = Array.from({ length: CONTACTS }, (_, n) => `user${n}@example.net`);
  for (const [number, email] of emails.entries()) await setup.contact(email, { customFields: { number } });
  let crashes = 0;

  /** Runs `work` in one process after the other until one of them completes it. */
  async function survive(work: (process: ReturnType<typeof setup.startProcess>) => Promise<unknown>) {
    for (;;) {
      const mortal = mortalWriter(setup.writer, random, random() * 0.3);
      const outcome = await Promise.race([mortal.death, work(setup.startProcess(mortal.writer))]);
      if (outcome !== 'crashed') return;
      crashes++;
    }
  }

  // The caller repeats a request without a response.
  for (const email of emails)
    await survive((process) =>
      process.sequences.recordEvent('acct_one', emailIdentifier(email), {
        name: EVENT,
        idempotencyKey: 'order-1',
      }),
    );
  const isChanged = random() < 0.5;
  for (let days = 0; tables.sequencePeople.inProgress(row.seq) > 0; days++) {
    if (days > 100) throw new Error('people are still in the sequence after 100 days');
    await survive(async ({ runner }) => {
      while ((await runner.round()) === 0);
    });
    if (days === 1 && isChanged)
      await sequences.update(OWNER, row.sequence_id, { steps: [message('Of the next version')] });
    clock.advance(DAY);
  }
  return {
    crashes,
    sent: sent().toSorted(),
    expected: emails
      .flatMap((email, number) => expectedOf(steps, number).map((subject) => `${email} ${subject}`))
      .toSorted(),
  };
}

/** Repeats `sendWithCrashes` until there were `wanted` crashes. `seed`: of all random values. */
export async function crashUntil(
  wanted: number,
  seed: number,
  check: (run: Awaited<ReturnType<typeof sendWithCrashes>>) => void,
) {
  const random = seededNumbers(seed);
  let crashes = 0;
  let messages = 0;
  while (crashes < wanted) {
    const run = await sendWithCrashes(random);
    check(run);
    crashes += run.crashes;
    messages += run.sent.length;
  }
  return { crashes, messages };
}
