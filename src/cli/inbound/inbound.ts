import type { Command } from 'commander';
import { presentInbound } from '../../http/api/inbound.ts';
import { readContent } from '../../inbound/content.ts';
import { createReceivedMails } from '../../inbound/mails.ts';
import { addressKey } from '../../mail/identifier.ts';
import { asJson, createCommand, createGroup, noteMore, ofAccount, option, rowLimit } from '../command.ts';
import type { CliContext } from '../context.ts';
import { fieldLines } from '../output/table.ts';

/** `postrider inbound list|show|raw|delete`: mail that accounts received. */
export function inboundCommand(context: CliContext): Command {
  return createGroup('inbound', 'Read and delete mail that an account received', {
    help: `
Examples:
  postrider inbound list --account acct_8f3k2m9x0q1z --from grace@example.net
  postrider inbound raw inb_1769860800000_4k6j8h2g5f1d --account acct_8f3k2m9x0q1z > mail.eml`,
    commands: [
      createCommand(context, {
        usage: 'list',
        description: 'List received mail, newest first',
        options: [
          ofAccount,
          option('--route <id>', 'only of this route'),
          option('--from <address>', 'only of this author'),
          option('--answers <messageId>', 'only answers to this message'),
          rowLimit,
          asJson,
        ],
        run: async ({ account, route, from, answers, limit }) => {
          const { rows, more } = await (await openMails(context, account)).list({
            accountId: account,
            routeId: route ?? null,
            from: from === undefined ? null : addressKey(from),
            answers: answers ?? null,
            beforeSeq: null,
            limit,
          });
          if (more) noteMore(context, limit);
          context.printRows(
            rows.map(presentInbound),
            'No received mail matches',
            ({ inboundId, receivedAt, from: author, to, subject, attachmentCount }) => ({
              inbound: inboundId,
              receivedAt,
              from: author,
              to: to.join(', '),
              subject,
              attachments: attachmentCount,
            }),
          );
        },
      }),
      createCommand(context, {
        usage: 'show <id>',
        description: 'Show a received mail: fields, results of authentication, text',
        options: [ofAccount, asJson],
        run: async (id, { account }) => {
          const mail = context.accepted(await (await openMails(context, account)).get(account, id));
          const { authentication, ...fields } = presentInbound(mail);
          const { headers, text, replyText, attachments } = readContent(mail.content) ?? NO_CONTENT;
          context.show({ ...fields, authentication, headers, text, replyText, attachments }, () => [
            ...fieldLines({ ...fields, to: mail.recipient, ...authentication }),
            ...attachments.map(({ name, type, size }) => `attachment: ${name} (${type}, ${size} bytes)`),
            '',
            text,
          ]);
        },
      }),
      createCommand(context, {
        usage: 'raw <id>',
        description: 'Print the bytes of a mail as they were received',
        options: [ofAccount],
        run: async (id, { account }) => {
          const { source_seq } = context.accepted(await (await openMails(context, account)).get(account, id));
          const { tables } = await context.open();
          const source = tables.inbound.source(source_seq) ?? context.fail(`There is no received mail ${id}`);
          process.stdout.write(Buffer.from(source));
        },
      }),
      createCommand(context, {
        usage: 'delete <id>',
        description: 'Delete a received mail; its event stays',
        options: [ofAccount, asJson],
        run: async (id, { account }) => {
          const mail = context.accepted(await (await openMails(context, account)).remove(account, id));
          context.show({ inboundId: mail.inbound_id }, () => `The received mail ${id} has been deleted`);
        },
      }),
    ],
  });
}

/** Of a mail that waits for the parser. */
const NO_CONTENT = { headers: [], text: '', replyText: '', attachments: [] };

async function openMails(context: CliContext, account: string) {
  return createReceivedMails(await context.open({ account }));
}
