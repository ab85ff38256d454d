import { type Command, InvalidArgumentError } from 'commander';
import * as z from 'zod';
import { createCampaigns, presentCampaign } from '../../campaigns/campaigns.ts';
import { MAX_WAIT_HOURS } from '../../campaigns/mail.ts';
import { type CampaignSending, createCampaignSending } from '../../campaigns/send.ts';
import { createRecorder } from '../../events/record.ts';
import { line, lines } from '../../http/api/fields.ts';
import { parseInput } from '../../http/validation/parse.ts';
import { WINNER_MEASURES, type WinnerMeasure } from '../../store/campaigns/campaign-variants.ts';
import type { CampaignRow } from '../../store/campaigns/campaigns.ts';
import { createTemplateThreads } from '../../templates/thread/threads.ts';
import { asJson, createCommand, createGroup, noteMore, ofAccount, option, rowLimit } from '../command.ts';
import { type CliContext, FAILED, type Opened, USAGE } from '../context.ts';
import { readTextFile } from '../input-files.ts';
import { alignedTable, fieldLines } from '../output/table.ts';

const inputSchema = z.object({ name: line(200), description: lines(2000).optional() });

/** `postrider campaign create|list|show|send|winner|pause|resume|cancel`. The daemon sees a change within a second. */
export function campaignCommand(context: CliContext): Command {
  return createGroup('campaign', 'Manage campaigns and send them to subscription groups and segments', {
    help: `
Examples:
  postrider campaign list --account acct_8f3k2m9x0q1z
  postrider campaign show campaign_1769860800000_9z1x3c5v7b2n --account acct_8f3k2m9x0q1z --json
  postrider campaign send campaign_1769860800000_9z1x3c5v7b2n --account acct_8f3k2m9x0q1z \\
    --group sgroup_1769860800000_5t7y9u1i3o5p --from "Example Shop <news@example.com>" \\
    --subject "Spring is here, {{firstName|dear reader}}" --html spring.html --per-hour 20000`,
    commands: [
      createCommand(context, {
        usage: 'create',
        description: 'Create a campaign',
        options: [
          ofAccount,
          option('--name <name>', 'name of the campaign', { required: true }),
          option('--description <text>', 'for display'),
          asJson,
        ],
        run: async ({ account, ...given }) => {
          const { name, description = null } = context.accepted(
            parseInput(inputSchema, { name: given.name, description: given.description }, 'campaign'),
            USAGE,
          );
          const deps = await context.open({ account });
          const campaigns = createCampaigns(deps, deps.limits.mayAdd.campaigns);
          const created = context.accepted(await campaigns.create(account, { name, description }));
          context.printRecord(presentCampaign(created));
        },
      }),
      createCommand(context, {
        usage: 'list',
        description: 'List the campaigns of an account, newest first',
        options: [ofAccount, rowLimit, asJson],
        run: async ({ account, limit }) => {
          const deps = await context.open({ account });
          const campaigns = createCampaigns(deps, deps.limits.mayAdd.campaigns);
          const { rows, more } = await campaigns.list({ accountId: account, beforeSeq: null, limit });
          if (more) noteMore(context, limit);
          context.printRows(rows.map(presentCampaign), 'There are no campaigns in this account');
        },
      }),
      createCommand(context, {
        usage: 'show <id>',
        description: 'Show a campaign: progress, totals, daily counts, most clicked links',
        options: [ofAccount, asJson],
        run: (id, { account }) => show(context, id, account),
      }),
      createCommand(context, {
        usage: 'send <id>',
        description: 'Send a campaign to the members of subscription groups; a campaign can be sent once',
        options: [
          ofAccount,
          option('--group <id>', 'a subscription group; may be repeated', several()),
          option('--segment <id>', 'only those in this segment; without --group of all active groups'),
          option('--exclude-segment <id>', 'not those in this segment; may be repeated', several()),
          option(
            '--exclude-campaign <id>',
            'not those who received this campaign; may be repeated',
            several(),
          ),
          option('--from <address>', 'sender, plain or with display name; its domain must be verified', {
            required: true,
          }),
          option('--reply-to <address>', 'address for replies'),
          option('--subject <text>', 'subject (default: that of the template)'),
          option('--html <file>', 'file with the HTML'),
          option('--text <file>', 'file with the plain text (default: derived from the HTML)'),
          option('--template <id>', 'template to use instead of --subject, --html and --text'),
          option('--var <name=value>', 'template variable, the same for all recipients; may be repeated', {
            parse: addVariable,
            default: {},
          }),
          option('--track-clicks', 'track clicks'),
          option('--track-opens', 'track opens'),
          option('--at <time>', 'start time, ISO 8601, at most 30 days ahead'),
          option('--per-hour <n>', 'maximum messages per hour, spread evenly', { parse: positive }),
          option('--variant <subject>', 'another subject, for an A/B test; up to three times', several()),
          option('--test-share <percent>', 'share of the recipients in the test; 100: no winner', {
            parse: (text: string) => atMost(text, 100),
          }),
          option('--winner <measure>', 'what decides it: opens or clicks by people (default: none)', {
            parse: winnerMeasure,
          }),
          option('--wait-hours <n>', 'hours from the end of the test to the decision', {
            parse: (text: string) => atMost(text, MAX_WAIT_HOURS),
          }),
          asJson,
        ],
        run: async (id, options) => {
          const deps = await context.open({ account: options.account });
          const account = deps.tables.accounts.get(options.account);
          if (account === null) return;
          const sending = sendingOf(deps);
          const requester = { account, useCase: 'mk', allowFrom: [], allowEssential: false } as const;
          const sent = await sending.send(requester, id, {
            subscriptionGroupIds: options.group,
            segmentId: options.segment,
            excludeSegmentIds: options.excludeSegment,
            excludeCampaignIds: options.excludeCampaign,
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
            ...testOf(options),
          });
          const { campaign, warnings } = context.accepted(sent, FAILED);
          for (const warning of warnings) context.note(`warning: ${warning}`);
          const done = campaign.status === 'scheduled' ? 'is scheduled' : 'is being sent';
          report(context, sending, campaign, done);
        },
      }),
      createCommand(context, {
        usage: 'winner <id>',
        description: 'Choose the winner of an A/B test: all others receive this variant',
        options: [
          ofAccount,
          option('--variant <name>', 'name of the variant, such as B', { required: true }),
          asJson,
        ],
        run: async (id, { account, variant }) => {
          const sending = sendingOf(await context.open());
          const chosen = await sending.choose(account, id, { variant, by: 'command line' });
          report(context, sending, context.accepted(chosen, FAILED), `continues with variant ${variant}`);
        },
      }),
      ...ACTIONS.map(({ verb, description, done }) =>
        createCommand(context, {
          usage: `${verb} <id>`,
          description,
          options: [
            ofAccount,
            ...(verb === 'resume'
              ? [option('--reason <text>', 'why it may continue; required if it was stopped automatically')]
              : []),
            asJson,
          ],
          run: async (id, { account, reason }) => {
            const sending = sendingOf(await context.open());
            const by = { by: 'command line', reason };
            report(context, sending, context.accepted(await sending[verb](account, id, by), FAILED), done);
          },
        }),
      ),
    ],
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

/** The sending of campaigns without the checks of disk and queue, which the daemon makes. */
function sendingOf(deps: Opened): CampaignSending {
  return createCampaignSending(deps, {
    publicUrl: deps.config.public.url,
    recorder: createRecorder(deps),
    pressure: { refusal: () => null },
    threads: createTemplateThreads(deps.log),
    onChange: () => {},
  });
}

async function show(context: CliContext, id: string, account: string): Promise<void> {
  const deps = await context.open();
  const campaigns = createCampaigns(deps, deps.limits.mayAdd.campaigns);
  const campaign = context.accepted(campaigns.get(account, id), FAILED);
  const period = { from: null, to: null, interval: 'day' } as const;
  const counted = context.accepted(await campaigns.analytics(account, id, period), FAILED);
  const shown = presentCampaign(campaign);
  const { totals, series, links } = counted;
  const progress = sendingOf(deps).progress(campaign);
  context.show({ ...shown, ...(progress === null ? {} : { progress }), totals, series, links }, () => {
    const { skipped, test, ...counts } = progress ?? {};
    return [
      ...fieldLines(shown),
      ...(skipped === undefined ? [] : ['', ...fieldLines(counts), ...fieldLines(skipped)]),
      ...(test === undefined ? [] : ['', ...testLines(test)]),
      '',
      ...fieldLines(totals),
      ...(links.length === 0
        ? []
        : ['', ...links.map(({ url, clicks }) => `${String(clicks).padStart(8)}  ${url}`)]),
    ];
  });
}

type ShownTest = NonNullable<NonNullable<ReturnType<CampaignSending['progress']>>['test']>;

/** The variants of a test as a table, and its decision. */
function testLines({ variants, decision, ...test }: ShownTest): string[] {
  const rate = ({ people, rate: share, difference }: ShownTest['variants'][number]['opens']) => {
    const points = (value: number) => (100 * value).toFixed(1);
    const interval =
      difference === null
        ? ''
        : ` (${points(difference.value)}, ${points(difference.low)} to ${points(difference.high)})`;
    return `${people}${share === null ? '' : ` = ${points(share)} %`}${interval}`;
  };
  const rows = variants.map((one) => [
    one.name,
    String(one.delivered),
    rate(one.opens),
    rate(one.clicks),
    one.subject,
  ]);
  const { variant = '-', reason = '-' } = decision ?? {};
  return [
    ...fieldLines({ ...test, chosen: variant, reason }),
    ...alignedTable([['VARIANT', 'DELIVERED', 'OPENS', 'CLICKS', 'SUBJECT'], ...rows]).split('\n'),
  ];
}

interface TestOptions {
  variant: string[];
  testShare?: number | undefined;
  winner?: WinnerMeasure | undefined;
  waitHours?: number | undefined;
}

/** The A/B test of the options: the mail itself and its other subjects. */
function testOf({ variant, testShare: share, winner = 'none', waitHours }: TestOptions) {
  if (variant.length === 0 && share === undefined) return {};
  const variants = [{}, ...variant.map((subject) => ({ subject }))];
  return { variants, ...(share === undefined ? {} : { test: { share, winner, waitHours } }) };
}

function winnerMeasure(text: string): WinnerMeasure {
  const measure = WINNER_MEASURES.find((one) => one === text);
  if (measure === undefined) throw new InvalidArgumentError(`Must be one of ${WINNER_MEASURES.join(', ')}`);
  return measure;
}

function atMost(text: string, max: number): number {
  const number = positive(text);
  if (number > max) throw new InvalidArgumentError(`Must be at most ${max}`);
  return number;
}

function report(context: CliContext, sending: CampaignSending, campaign: CampaignRow, done: string): void {
  context.show(
    { ...presentCampaign(campaign), progress: sending.progress(campaign) },
    () => `${campaign.campaign_id} ${done}`,
  );
}

/** Settings of an option that may be repeated. */
const several = () => ({ parse: (id: string, before: string[]) => [...before, id], default: [] as string[] });

function addVariable(text: string, before: Record<string, string>): Record<string, string> {
  const equals = text.indexOf('=');
  if (equals < 1) throw new InvalidArgumentError('Must be NAME=VALUE');
  return { ...before, [text.slice(0, equals)]: text.slice(equals + 1) };
}

function positive(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1)
    throw new InvalidArgumentError('Must be a whole number of at least 1');
  return number;
}
