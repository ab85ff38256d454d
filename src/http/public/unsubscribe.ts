import type { Clock } from '../../core/clock.ts';
import { createTokenBuckets, type Rate } from '../../core/token-bucket.ts';
import type { SentMail } from '../../mail/sent-mail.ts';
import type { Tokens } from '../../mail/tokens.ts';
import type { Writer } from '../../store/database/writer.ts';
import type { Tables } from '../../store/tables.ts';
import type { Choice, OptOutPart, OptOutSource, Unsubscribing } from '../../suppression/unsubscribe.ts';
import { isOwnHost, type PageHosts, redirectToPlatform } from './own-host.ts';
import { partiesOf } from './parties.ts';
import { tooOftenPage, unknownLinkPage } from './plain-pages.ts';
import type { PublicResponse, PublicRoute } from './response.ts';
import {
  askPage,
  resubscribedPage,
  stoppedPage,
  stoppedParts,
  type UnsubscribeView,
} from './unsubscribe-page.ts';

/*
 * `/u/<token>`. GET shows the choices and changes nothing, because scanners follow links. POST takes effect immediately,
 * whether a mailbox provider sends it for its user (RFC 8058) or the form of the page. It uses no cookie and no redirect,
 * and repeating it changes nothing.
 */

export interface UnsubscribeDeps {
  hosts: PageHosts;
  tables: Tables;
  writer: Writer;
  tokens: Pick<Tokens, 'unsubscribeUrl'>;
  unsubscribing: Unsubscribing;
  clock: Clock;
}

/**
 * Rate of undoing opt-outs, for each recipient of an account. An opt-out itself is not limited (RFC 8058 §3.1): once
 * everything is stopped, further ones change nothing until an undo, so events and consent records are bounded as well.
 */
const UNDO_RATE: Rate = { burst: 10, perSecond: 10 / 3600 };
const MAX_RECIPIENTS = 20_000;

/**
 * Keeps the undo rates of up to 20,000 recipients in memory. A valid POST is one unit of work, and the page follows
 * when it is durable.
 */
export function unsubscribeRoute(deps: UnsubscribeDeps): PublicRoute {
  const { tables, writer, tokens, unsubscribing } = deps;
  const undos = createTokenBuckets(deps.clock, UNDO_RATE, MAX_RECIPIENTS);

  const viewOf = (mail: SentMail): UnsubscribeView => ({
    ...partiesOf(tables, mail),
    stream: mail.stream,
    state: unsubscribing.state(tables, mail),
  });

  function show(mail: SentMail): PublicResponse {
    const view = viewOf(mail);
    const stopped = stoppedParts(view);
    return stopped.length > 0 ? stoppedPage(view, stopped, 'before') : askPage(view);
  }

  async function stop(mail: SentMail, choice: Choice, source: OptOutSource): Promise<PublicResponse> {
    const stopped = await writer.run(
      (all) => unsubscribing.optOut(all, mail, choice, source),
      mail.accountId,
    );
    const view = viewOf(mail);
    // Simulated mail has no opt-outs.
    if (mail.simulated) return askPage(view);
    return stoppedPage(view, stopped.length > 0 ? stopped : stoppedParts(view), 'now');
  }

  async function undo(
    mail: SentMail,
    parts: readonly OptOutPart[],
    source: OptOutSource,
  ): Promise<PublicResponse> {
    const { allowed, retryAfterSeconds } = undos.of(`${mail.accountId} ${mail.recipientHash}`).take();
    if (!allowed) return tooOftenPage(retryAfterSeconds);
    await writer.run((all) => unsubscribing.undo(all, mail, parts, source), mail.accountId);
    return resubscribedPage(viewOf(mail));
  }

  return {
    name: 'u',
    methods: ['GET', 'POST'],
    handle: ({ method, host, token, visitor, fields }) => {
      const mail = tokens.unsubscribeUrl(token);
      if (mail === null) return unknownLinkPage();
      const isOneClick = /^one-click$/i.test(fields.get('list-unsubscribe') ?? '');
      // A mailbox provider sends one-click to the address in the mail, shows no page and follows no redirect.
      if (!isOneClick && !isOwnHost(deps.hosts, host, mail.accountId))
        return method === 'GET' ? redirectToPlatform(deps.hosts, `/u/${token}`) : unknownLinkPage();
      if (method === 'GET') return show(mail);
      const source = (how: OptOutSource['method']): OptOutSource => ({
        method: how,
        ip: visitor.ip,
        userAgent: visitor.userAgent,
      });
      if (isOneClick) return stop(mail, 'list', source('one_click'));
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
