import { createBuckets, type Rate } from '../../accounts/rate-limits.ts';
import type { Clock } from '../../core/clock.ts';
import type { SentMail } from '../../mail/sent-mail.ts';
import type { Tokens } from '../../mail/tokens.ts';
import type { Tables } from '../../store/tables.ts';
import type { Writer } from '../../store/writer.ts';
import type { Choice, OptOutPart, OptOutSource, Unsubscribing } from '../../suppression/unsubscribe.ts';
import type { PublicAnswer, PublicPlace } from './answer.ts';
import { correspondents } from './correspondents.ts';
import { tooOftenPage, unknownLinkPage } from './plain-pages.ts';
import { askPage, inTheWay, stoppedPage, takenBackPage, type UnsubscribeView } from './unsubscribe-page.ts';

/**
 * `/u/<token>`. GET shows what can be stopped and changes nothing, because scanners follow links. POST does
 * what it says at once, whoever sends it: a mailbox provider for its user (RFC 8058), or the page's own form.
 * No cookie, no redirect; sent again, it changes nothing.
 */
export interface UnsubscribeSettings {
  tables: Tables;
  writer: Writer;
  tokens: Pick<Tokens, 'unsubscribeUrl'>;
  unsubscribing: Unsubscribing;
  clock: Clock;
}

/**
 * How often an opt-out may be taken back, for each recipient of an account. Only this side is limited: an opt-out
 * always succeeds (RFC 8058 §3.1), and without taking one back there is nothing left to stop, so the events and
 * consent records that links can cause are bounded as well.
 */
const UNDO_RATE: Rate = { burst: 10, perSecond: 10 / 3600 };
const RECIPIENTS_REMEMBERED = 20_000;

export function unsubscribePlace(settings: UnsubscribeSettings): PublicPlace {
  const { tables, writer, tokens, unsubscribing } = settings;
  const undos = createBuckets(settings.clock, UNDO_RATE, RECIPIENTS_REMEMBERED);

  const viewOf = (mail: SentMail): UnsubscribeView => ({
    ...correspondents(tables, mail),
    stream: mail.stream,
    standing: unsubscribing.state(tables, mail),
  });

  function show(mail: SentMail): PublicAnswer {
    const view = viewOf(mail);
    const out = inTheWay(view);
    return out.length > 0 ? stoppedPage(view, out, 'before') : askPage(view);
  }

  async function stop(mail: SentMail, choice: Choice, source: OptOutSource): Promise<PublicAnswer> {
    const stopped = await writer.run((all) => unsubscribing.optOut(all, mail, choice, source));
    const view = viewOf(mail);
    // Nothing can be stopped of mail that was only simulated.
    if (mail.simulated) return askPage(view);
    return stoppedPage(view, stopped.length > 0 ? stopped : inTheWay(view), 'now');
  }

  async function undo(
    mail: SentMail,
    parts: readonly OptOutPart[],
    source: OptOutSource,
  ): Promise<PublicAnswer> {
    const { allowed, retryAfterSeconds } = undos.take(`${mail.accountId} ${mail.recipientHash}`);
    if (!allowed) return tooOftenPage(retryAfterSeconds);
    await writer.run((all) => unsubscribing.undo(all, mail, parts, source));
    return takenBackPage(viewOf(mail));
  }

  return {
    name: 'u',
    methods: ['GET', 'POST'],
    answer: ({ method, token, visitor, fields }) => {
      const mail = tokens.unsubscribeUrl.read(token);
      if (mail === null) return unknownLinkPage();
      if (method === 'GET') return show(mail);
      const source = (how: OptOutSource['method']): OptOutSource => ({
        method: how,
        ip: visitor.ip,
        userAgent: visitor.userAgent,
      });
      if (/^one-click$/i.test(fields.get('list-unsubscribe') ?? ''))
        return stop(mail, 'list', source('one_click'));
      const parts = (fields.get('undo') ?? '').split(' ').filter(isPart);
      if (parts.length > 0) return undo(mail, parts, source('page'));
      const choice = fields.get('choice');
      if (choice === 'list' || choice === 'all') return stop(mail, choice, source('page'));
      return askPage(viewOf(mail), 400);
    },
  };
}

function isPart(text: string): text is OptOutPart {
  return text === 'group' || text === 'mk' || text === 'tx';
}
