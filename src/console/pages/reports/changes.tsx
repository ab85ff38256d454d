import { operate } from '../../api.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { Card, Confirmed, Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import type { Reputation } from './providers.tsx';

type Change = Reputation['changes'][number];

/** What changed at which provider and since when, in sentences. */
export function Changes({ changes }: { changes: readonly Change[] }) {
  const { t } = useTexts();
  return (
    <Card title={t('reputation.changes')}>
      {changes.length === 0 ? (
        <p class="all-well">
          <Icon name="circle-check" />
          {t('reputation.changes.none')}
        </p>
      ) : (
        <ul class="reputation-changes">
          {changes.map((change) => (
            <li
              key={`${change.rate} ${change.provider} ${change.domain}`}
              class={change.trend === 'worse' ? 'worse' : undefined}
            >
              <Icon name={change.trend === 'worse' ? 'triangle-alert' : 'circle-check'} />
              <Sentence of={change} />
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Sentence({ of: { rate, provider, domain, since, share, before } }: { of: Change }) {
  const { t, locale } = useTexts();
  const percents = new Intl.NumberFormat(locale, { style: 'percent', maximumSignificantDigits: 2 });
  const day = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'long', timeZone: 'UTC' });
  return (
    <span>
      {t(`reputation.change.${rate}`, {
        provider: provider === 'other' ? t('reputation.otherProviders') : provider,
        domain,
        since: day.format(Date.parse(since)),
        share: percents.format(share),
        before: percents.format(before),
      })}
    </span>
  );
}

/** What new accounts and domains may send today; nothing while none is limited. */
export function Ramp({ ramp }: Pick<Reputation, 'ramp'>) {
  const { t, number } = useTexts();
  if (ramp.length === 0) return null;
  return (
    <Card title={t('reputation.ramp')}>
      <ul class="reputation-changes">
        {ramp.map(({ domain, day, days, limit, used }) => (
          <li key={domain ?? ''}>
            <Icon name="clock" />
            <span>
              {t('reputation.ramp.of', {
                what: domain ?? t('reputation.ramp.account'),
                used: number(used),
                limit: number(limit),
                day: number(day),
                days: number(days),
              })}
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

type Limit = Reputation['limits'][number];

/** The automatic limits in force, and their end with a reason. */
export function Limits({ limits, onChanged }: Pick<Reputation, 'limits'> & { onChanged: () => void }) {
  const { t } = useTexts();
  return (
    <Card title={t('reputation.limits')}>
      {limits.length === 0 ? (
        <p class="all-well">
          <Icon name="circle-check" />
          {t('reputation.limits.none')}
        </p>
      ) : (
        <ul class="reputation-changes">
          {limits.map((limit) => (
            <li key={limit.limitId} class="worse">
              <Icon name="triangle-alert" />
              <LimitInForce limit={limit} onChanged={onChanged} />
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function LimitInForce({ limit, onChanged }: { limit: Limit; onChanged: () => void }) {
  const { t, percent, number } = useTexts();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const { limitId, level, domain, provider, reason, figures } = limit;
  const what = [domain ?? t('overview.limit.account'), provider ?? ''].filter(Boolean).join(' → ');
  return (
    <div>
      <strong>{t(`overview.limit.${level}`, { what })}</strong>
      <p>
        {t(`campaigns.stopped.${reason}`, {
          events: number(figures.events),
          messages: number(figures.messages),
          rate: percent(figures.events, figures.messages),
          limit: percent(figures.limit, 100),
        })}{' '}
        {t(`campaigns.stopped.${reason}.remedy`)}
      </p>
      {level !== 'notice' && may('resumeSending') && (
        <Confirmed
          label={t('campaigns.resume')}
          question={t('campaigns.resume.confirm')}
          reason={t('campaigns.resume.reason')}
          action={(given) =>
            run(async () => {
              await operate('post', '/web-setup/reputation/limits/{limitId}/resume', {
                account: accountId,
                parameters: { limitId },
                body: { reason: given },
              });
              onChanged();
              return '';
            })
          }
        />
      )}
      {outcome?.failed === true && <Outcome of={outcome} />}
    </div>
  );
}
