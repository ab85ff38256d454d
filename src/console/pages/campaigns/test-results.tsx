import { operate } from '../../api.ts';
import { toast } from '../../parts/toast.tsx';
import { Card, Chip, Confirmed, Outcome, Table, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { type Texts, useTexts } from '../../texts.ts';
import { CAMPAIGN, type CampaignResource } from './draft-saver.ts';

type AbTest = NonNullable<NonNullable<CampaignResource['progress']>['test']>;
type TestedVariant = AbTest['variants'][number];

interface TestResultsProps {
  campaign: CampaignResource;
  test: AbTest;
  reload: () => void;
}

/** The figures of each variant of an A/B test, whether it is decided and why, and the buttons that decide it. */
export function TestResults({ campaign, test, reload }: TestResultsProps) {
  const texts = useTexts();
  const { t, percent } = texts;
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const { campaignId, status } = campaign;
  const { state, decision, variants, confidence } = test;
  const isOpen = (state === 'sending' || state === 'waiting') && status !== 'sent' && status !== 'cancelled';
  const canChoose = isOpen && may('chooseCampaignWinner');
  const choose = (variant: string) =>
    run(async () => {
      await operate('post', `${CAMPAIGN}/winner`, {
        account: accountId,
        parameters: { campaignId },
        body: { variant },
      });
      toast(t('campaigns.variants.chosen', { name: variant }));
      reload();
      return '';
    });
  const measure = test.winner === 'clicks' ? 'clicks' : 'opens';
  return (
    <Card title={t('campaigns.variants.card')}>
      <p class="variants-state">{stateText(test, isOpen, status, texts)}</p>
      <Table
        label={t('campaigns.variants.card')}
        heads={[
          t('campaigns.variants.variant'),
          { text: t('campaigns.count.delivered'), end: true },
          { text: t('campaigns.count.uniqueOpened'), end: true },
          { text: t('campaigns.count.uniqueClicked'), end: true },
          { text: t(`campaigns.variants.difference.${measure}`), end: true },
          ...(canChoose ? [{ text: t('campaigns.variants.choose'), unseen: true as const }] : []),
        ]}
      >
        {variants.map((variant) => (
          <tr key={variant.name}>
            <th scope="row">
              {variant.name}
              {decision?.variant === variant.name && (
                <>
                  {' '}
                  <Chip kind="ok">{t('campaigns.variants.rest')}</Chip>
                </>
              )}
              <span class="variant-subject">{variant.subject}</span>
            </th>
            <td>{texts.number(variant.delivered)}</td>
            <td>
              <Rate of={variant.opens} />
            </td>
            <td>
              <Rate of={variant.clicks} />
            </td>
            <td>
              <Difference of={variant[measure]} />
            </td>
            {canChoose && (
              <td class="variant-choice">
                <Confirmed
                  label={t('campaigns.variants.choose')}
                  question={t('campaigns.variants.choose.confirm', { name: variant.name })}
                  action={() => choose(variant.name)}
                />
              </td>
            )}
          </tr>
        ))}
      </Table>
      {outcome?.failed === true && (
        <div class="card-body">
          <Outcome of={outcome} />
        </div>
      )}
      <p class="variants-note small">
        {t('campaigns.variants.note', { confidence: percent(confidence, 1) })}
      </p>
    </Card>
  );
}

function Rate({ of: { people, rate } }: { of: TestedVariant['opens'] }) {
  const { number, percent } = useTexts();
  return (
    <>
      {rate === null ? '–' : percent(rate, 1)}
      <span class="variant-detail">{number(people)}</span>
    </>
  );
}

/** To the highest rate, in percentage points, with its interval. */
function Difference({ of: { rate, difference } }: { of: TestedVariant['opens'] }) {
  const { t, number } = useTexts();
  if (difference === null) return <>{rate === null ? '–' : t('campaigns.variants.highest')}</>;
  // Without the sign of a zero.
  const points = (share: number) => number(Math.round(share * 1000) / 10 + 0);
  const { value, low, high } = difference;
  return (
    <>
      {t('campaigns.variants.points', { value: points(value) })}
      <span class="variant-detail">
        {t('campaigns.variants.interval', { low: points(low), high: points(high) })}
      </span>
    </>
  );
}

/** What happens with the test, or how it ended. */
function stateText(
  { state, decidesAt, decision }: AbTest,
  isOpen: boolean,
  status: CampaignResource['status'],
  { t, time }: Texts,
): string {
  if (decision !== null)
    return t(`campaigns.variants.decided.${decision.reason}`, {
      name: decision.variant,
      time: time(decision.decidedAt),
      by: decision.by ?? '',
    });
  if (state === 'split') return t('campaigns.variants.state.split');
  if (!isOpen) return t('campaigns.variants.state.ended');
  if (decidesAt !== null) return t('campaigns.variants.state.waiting', { time: time(decidesAt) });
  const sending = status === 'scheduled' || status === 'paused' ? status : 'sending';
  return t(`campaigns.variants.state.${sending}`);
}
