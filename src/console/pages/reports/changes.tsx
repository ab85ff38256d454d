import { Icon } from '../../parts/icon/icon.tsx';
import { Card } from '../../parts.tsx';
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
            <li key={`${change.rate} ${change.provider} ${change.domain}`} class={change.trend}>
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

/** The automatic limits in force. */
export function Limits({ limits }: Pick<Reputation, 'limits'>) {
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
          {limits.map((limit, index) => (
            <li key={index} class="worse">
              <Icon name="triangle-alert" />
              <span>{sentenceOf(limit)}</span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function sentenceOf(limit: Readonly<Record<string, unknown>>): string {
  const { message } = limit;
  return typeof message === 'string' ? message : '';
}
