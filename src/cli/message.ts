import { Command } from 'commander';
import { messageTimeline, publicMessage } from '../events/message-view.ts';
import type { CliContext } from './context.ts';

/** `postrider message show ID`: one message, its fields, its timeline, every SMTP reply. */
export function messageCommand(context: CliContext): Command {
  const command = new Command('message').description('look at single messages');
  command
    .command('show <id>')
    .description('one message: fields, timeline, every SMTP reply')
    .option('--json', 'print JSON')
    .action((id: string, options: { json?: boolean }) => showMessage(context, id, options.json === true));
  return command;
}

async function showMessage(context: CliContext, id: string, json: boolean): Promise<void> {
  const { tables } = await context.open();
  const row = tables.messages.byId(id);
  if (row === null) context.fail(`there is no message ${id}`);
  else {
    const message = publicMessage(row);
    const timeline = messageTimeline(tables, row);
    if (json) context.printJson({ ...message, timeline });
    else
      context.print(
        [
          ...Object.entries(message).map(([name, value]) => `${name.padEnd(20)} ${String(value)}`),
          '',
          ...timeline.map(timelineText),
        ].join('\n'),
      );
  }
}

function timelineText(entry: Record<string, unknown>): string {
  const { type, timestamp, event, eventId: _, ...rest } = entry;
  const at = String(timestamp);
  if (type === 'event') return `${at}  ${String(event)}  ${JSON.stringify(ownFields(rest))}`;
  const heading = `${at}  attempt ${String(rest['attempt'])} (${String(rest['lane'])})  ${JSON.stringify(rest['reply'])}`;
  return `${heading}\n${sessionsText(rest['sessions'])}`;
}

/** Without the fields that every event of the message repeats. */
function ownFields(fields: Record<string, unknown>): Record<string, unknown> {
  const common = new Set([
    'accountId',
    'emailId',
    'messageId',
    'useCase',
    'from',
    'recipient',
    'contactIdentifier',
    'subject',
    'domainId',
    'jobId',
    'campaignId',
    'subscriptionGroupId',
  ]);
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !common.has(name)));
}

function sessionsText(sessions: unknown): string {
  return Array.isArray(sessions)
    ? sessions.map((session) => `    ${JSON.stringify(session)}`).join('\n')
    : '';
}
