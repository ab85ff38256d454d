import type { Command } from 'commander';
import type { SequenceStep } from '../../audience/sequences/definition.ts';
import { createSequences, type Sequences } from '../../campaigns/sequences/sequences.ts';
import { presentSequence, type Sequence } from '../../http/api/sequences.ts';
import { createTemplateThreads } from '../../templates/thread/threads.ts';
import { asJson, createCommand, createGroup, noteMore, ofAccount, rowLimit } from '../command.ts';
import { type CliContext, FAILED } from '../context.ts';
import { alignedTable, fieldLines } from '../output/table.ts';

/** `postrider sequences list|show|activate|pause`. The daemon sees a change within a second. */
export function sequencesCommand(context: CliContext): Command {
  return createGroup('sequences', 'Manage sequences, which send messages to each contact in its own time', {
    help: `
Examples:
  postrider sequences list --account acct_8f3k2m9x0q1z
  postrider sequences show seq_1769860800000_4w6e8r0t2y5u --account acct_8f3k2m9x0q1z
  postrider sequences pause seq_1769860800000_4w6e8r0t2y5u --account acct_8f3k2m9x0q1z`,
    commands: [
      createCommand(context, {
        usage: 'list',
        description: 'List the sequences of an account, newest first',
        options: [ofAccount, rowLimit, asJson],
        run: async ({ account, limit }) => {
          const sequences = await openSequences(context, account);
          const { rows, more } = await sequences.list({ accountId: account, beforeSeq: null, limit });
          if (more) noteMore(context, limit);
          context.printRows(
            rows.map((detail) => presentSequence(sequences, detail)),
            'There are no sequences in this account',
            ({ sequenceId, name, status, steps, people }) => ({
              sequenceId,
              name,
              status,
              steps: steps.length,
              inProgress: people.inProgress,
              ended: endedOf(people),
            }),
          );
        },
      }),
      createCommand(context, {
        usage: 'show <id>',
        description: 'Show a sequence: people and messages of each step, and who has left',
        options: [ofAccount, asJson],
        run: async (id, { account }) => {
          const sequences = await openSequences(context, account);
          const shown = presentSequence(sequences, context.accepted(sequences.get(account, id), FAILED));
          context.show(shown, () => linesOf(shown));
        },
      }),
      ...ACTIONS.map(({ verb, description, done }) =>
        createCommand(context, {
          usage: `${verb} <id>`,
          description,
          options: [ofAccount, asJson],
          run: async (id, { account }) => {
            const sequences = await openSequences(context, account);
            const changed = await sequences[verb]({ accountId: account, allowFrom: [] }, id);
            const detail = context.accepted(changed, FAILED);
            context.show(presentSequence(sequences, detail), () => `${id} ${done}`);
          },
        }),
      ),
    ],
  });
}

const ACTIONS = [
  {
    verb: 'activate',
    description: 'Activate a sequence, after a check of all its messages',
    done: 'is active',
  },
  { verb: 'pause', description: 'Pause a sequence: nobody moves on and nobody enters', done: 'is paused' },
] as const;

/** The sequences of the command's database; the daemon moves people. */
async function openSequences(context: CliContext, account: string): Promise<Sequences> {
  const deps = await context.open({ account });
  return createSequences(deps, {
    onChange: () => {},
    obstacle: () => null,
    threads: createTemplateThreads(deps.log),
  });
}

function endedOf({ ended }: Sequence['people']): number {
  return Object.values(ended).reduce((sum, count) => sum + count, 0);
}

function linesOf({ steps, stepCounts, people, trigger, goal, ...sequence }: Sequence): string[] {
  const { ended, ...counts } = people;
  const rows = stepCounts.map(({ step, people: waiting, sent, delivered, opened, clicked }) => [
    `${step} ${wordsOf(steps[step])}`,
    ...[waiting, sent, delivered, opened, clicked].map((count) => count.toLocaleString('en')),
  ]);
  return [
    ...fieldLines({ ...sequence, trigger: JSON.stringify(trigger), goal: goal && JSON.stringify(goal) }),
    '',
    ...fieldLines({ ...counts, ...ended }),
    '',
    alignedTable([['step', 'people', 'sent', 'delivered', 'opened', 'clicked'], ...rows]),
  ];
}

function wordsOf({ wait, send, when, otherwise }: SequenceStep = {}): string {
  if (wait !== undefined) return `wait ${wait}`;
  if (send !== undefined) return `send ${send.subject ?? send.templateId ?? ''}`;
  return when === undefined ? 'end' : `condition, otherwise ${otherwise}`;
}
