import type { PresentedHealth, WebhookHealthResponse } from '../../../http/console/webhook-routes.ts';
import { type Data, useConsoleData, useRefresh } from '../../data.ts';
import { addressOf } from '../../operations.ts';
import { Sparkline } from '../../parts/chart/sparkline.tsx';
import { Time } from '../../parts/time.tsx';
import { Notice } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { type Texts, useTexts } from '../../texts.ts';

/** How the endpoints of the account respond, or that of one webhook. */
export function useHealth(webhookId?: string): Data<WebhookHealthResponse> {
  const { accountId } = useMember();
  const data = useConsoleData<WebhookHealthResponse>(
    addressOf('/console/webhook-health', { webhookId }),
    accountId,
  );
  // Calls cause no events of the account.
  useRefresh(data.reload);
  return data;
}

/** The share of events that the endpoint accepted, and how it changed. */
export function SuccessRate({ of: { succeeded, failed, parts, since } }: { of: PresentedHealth }) {
  const { t, percent, time } = useTexts();
  const count = succeeded + failed;
  if (count === 0) return <>–</>;
  const isCut = Date.parse(since) > Date.now() - SHORTER_MS;
  const title = isCut
    ? t('webhooks.rate.since', { count, time: time(since) })
    : t('webhooks.rate.of', { succeeded, count });
  return (
    <span class="rate" title={title}>
      <Sparkline
        columns={parts.map((part) => [part.succeeded, part.failed])}
        colors={['--c-delivered', '--c-bounced']}
      />
      <span class="rate-share">{percent(succeeded, count, 'down')}</span>
    </span>
  );
}

/** A period that began later than this has not all deliveries of 24 hours. */
const SHORTER_MS = 23 * 3_600_000;

/** The last call: the status of the response and when. */
export function LastCall({ of: { last } }: { of: PresentedHealth }) {
  const { t } = useTexts();
  if (last === null) return <>{t('webhooks.last.none')}</>;
  return (
    <span class={last.succeeded ? 'last-call' : 'last-call bad'} title={last.error ?? undefined}>
      {last.responseCode ?? t('webhooks.last.noResponse')} · <Time at={last.at} />
    </span>
  );
}

/** That events wait for an endpoint, and why. */
export function Waiting({
  of: health,
  failingSince,
}: {
  of: PresentedHealth;
  failingSince?: string | undefined;
}) {
  const texts = useTexts();
  const { t, plural, time } = texts;
  const events = plural('webhooks.events.waiting', health.waiting);
  if (isFuture(health.nextProbeAt))
    return (
      <Notice
        kind="warn"
        title={t('webhooks.heldBack', { time: clockTime(health.nextProbeAt, texts), events })}
      >
        <p>{t('webhooks.heldBack.why')}</p>
      </Notice>
    );
  if (failingSince === undefined) return null;
  return (
    <Notice kind="bad" title={t('webhooks.failing.title', { time: time(failingSince) })}>
      <p>{t('webhooks.failing.why', { events })}</p>
    </Notice>
  );
}

/** Whether a time has not passed yet. */
export function isFuture(at: string | null | undefined): at is string {
  return at !== null && at !== undefined && Date.parse(at) > Date.now();
}

/** Hour and minute of a time of today. */
function clockTime(at: string, { locale }: Texts): string {
  return new Intl.DateTimeFormat(locale, { timeStyle: 'short' }).format(new Date(at));
}
