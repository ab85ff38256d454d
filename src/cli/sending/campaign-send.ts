import { type Command, InvalidArgumentError } from 'commander';
import { presentCampaign } from '../../campaigns/campaigns.ts';
import { type CampaignSending, createCampaignSending } from '../../campaigns/send.ts';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import type { CampaignRow } from '../../store/campaigns/campaigns.ts';
import type { CliContext, CliDeps } from '../context.ts';
import { readTextFile } from '../input-files.ts';

/** `postrider campaign send|pause|resume|cancel`. The daemon sees the change within a second. */
export function sendCampaignCommand(context: CliContext, command: Command): void {
  command
    .command('send <id>')
    .description('Send a campaign to every member of a subscription group; a campaign can be sent once')
    .requiredOption('--account <id>', 'the account')
    .requiredOption('--group <id>', 'the subscription group')
    .requiredOption('--from <address>', 'sender, plain or with display name; its domain must be verified')
    .option('--reply-to <address>', 'address for replies')
    .option('--subject <text>', 'subject (default: that of the template)')
    .option('--html <file>', 'file with the HTML')
    .option('--text <file>', 'file with the plain text (default: derived from the HTML)')
    .option('--template <id>', 'template to use instead of --subject, --html and --text')
    .option(
      '--var <name=value>',
      'template variable, the same for all recipients; may be repeated',
      variable,
      {},
    )
    .option('--track-clicks', 'track clicks')
    .option('--track-opens', 'track opens')
    .option('--at <time>', 'start time, ISO 8601, at most 30 days ahead')
    .option('--per-hour <n>', 'maximum messages per hour, spread evenly', perHour)
    .option('--json', 'print JSON')
    .action((id: string, options: SendOptions) => send(context, id, options));
  for (const { verb, description, done } of ACTIONS) {
    command
      .command(`${verb} <id>`)
      .description(description)
      .requiredOption('--account <id>', 'the account')
      .option('--json', 'print JSON')
      .action(async (id: string, { account, json }: ActionOptions) => {
        const sending = campaignSending(await context.open());
        report(context, sending, await sending[verb](account, id), done, json);
      });
  }
}

/** The sending of campaigns without the checks of disk and queue, which the daemon makes. */
export function campaignSending(deps: CliDeps): CampaignSending {
  const publicUrl = deps.config.public.url;
  return createCampaignSending({
    ...deps,
    publicUrl,
    pressure: { refusal: () => null },
    onChange: () => {},
  });
}

const ACTIONS = [
  { verb: 'pause', description: 'Pause a campaign and hold its queued messages', done: 'is paused' },
  { verb: 'resume', description: 'Resume a paused campaign', done: 'is resumed' },
  {
    verb: 'cancel',
    description: 'Cancel a campaign permanently, with its queued messages',
    done: 'is cancelled',
  },
] as const;

interface ActionOptions {
  account: string;
  json?: boolean;
}

interface SendOptions extends ActionOptions {
  group: string;
  from: string;
  replyTo?: string;
  subject?: string;
  html?: string;
  text?: string;
  template?: string;
  var: Record<string, string>;
  trackClicks?: boolean;
  trackOpens?: boolean;
  at?: string;
  perHour?: number;
}

async function send(context: CliContext, id: string, options: SendOptions): Promise<void> {
  const deps = await context.open();
  const account = deps.tables.accounts.get(options.account);
  if (account === null) return context.fail(`There is no account ${options.account}`);
  const sending = campaignSending(deps);
  const sent = await sending.send({ account, useCase: 'mk', allowFrom: [], allowEssential: false }, id, {
    subscriptionGroupId: options.group,
    from: options.from,
    replyTo: options.replyTo,
    subject: options.subject,
    html: options.html === undefined ? undefined : readTextFile('--html', options.html),
    text: options.text === undefined ? undefined : readTextFile('--text', options.text),
    templateId: options.template,
    templateVariables: options.var,
    enableClickTracking: options.trackClicks,
    enableOpenTracking: options.trackOpens,
    scheduledAt: options.at,
    perHour: options.perHour,
  });
  if (isRefusal(sent)) return context.fail(sent.message);
  for (const warning of sent.warnings) context.note(`warning: ${warning}`);
  const done = sent.campaign.status === 'scheduled' ? 'is scheduled' : 'is being sent';
  report(context, sending, sent.campaign, done, options.json);
}

function report(
  context: CliContext,
  sending: CampaignSending,
  campaign: CampaignRow | Refusal,
  done: string,
  json: boolean | undefined,
): void {
  if (isRefusal(campaign)) context.fail(campaign.message);
  else if (json === true)
    context.printJson({ ...presentCampaign(campaign), progress: sending.progress(campaign) });
  else context.print(`${campaign.campaign_id} ${done}`);
}

function variable(text: string, before: Record<string, string>): Record<string, string> {
  const equals = text.indexOf('=');
  if (equals < 1) throw new InvalidArgumentError('Must be NAME=VALUE');
  return { ...before, [text.slice(0, equals)]: text.slice(equals + 1) };
}

function perHour(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1)
    throw new InvalidArgumentError('Must be a whole number of at least 1');
  return number;
}
