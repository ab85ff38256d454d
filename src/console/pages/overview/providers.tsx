import { useOperation } from '../../data.ts';
import { ShareBar } from '../../parts/chart/share-bar.tsx';
import { Card, Loaded, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import type { PeriodRange } from './period.ts';

const SHOWN = 5;

/** The mailbox providers with the most messages of the period. */
export function Providers({ range }: { range: PeriodRange }) {
  const { t, number, percent } = useTexts();
  const { href } = useNavigation();
  const data = useOperation('/web-setup/statistics', {
    interval: range.interval,
    by: 'provider',
    from: new Date(range.from).toISOString(),
    to: new Date(range.to).toISOString(),
  });
  return (
    <Card
      title={t('overview.volume.of.provider')}
      action={<a href={href('reputation')}>{t('overview.all')}</a>}
    >
      <Loaded data={data}>
        {({ series }) =>
          series.length === 0 ? (
            <p class="all-well">{t('overview.volume.none')}</p>
          ) : (
            <Table
              label={t('overview.volume.of.provider')}
              heads={[
                t('overview.provider'),
                { text: t('overview.outcome.accepted'), end: true },
                t('overview.figure.share'),
                { text: t('overview.outcome.delivered'), end: true },
                { text: t('overview.outcome.bounced'), end: true },
              ]}
            >
              {series.slice(0, SHOWN).map(({ name = '', points }) => {
                const sum = (outcome: 'accepted' | 'delivered' | 'bounced') =>
                  points.reduce((total, point) => total + point[outcome], 0);
                const accepted = sum('accepted');
                return (
                  <tr key={name}>
                    <th scope="row">{name === 'other' ? t('overview.volume.others') : name}</th>
                    <td>{number(accepted)}</td>
                    <td>
                      <ShareBar
                        total={accepted}
                        parts={[
                          { color: '--c-delivered', value: sum('delivered') },
                          { color: '--c-bounced', value: sum('bounced') },
                        ]}
                      />
                    </td>
                    <td>{percent(sum('delivered'), accepted)}</td>
                    <td>{percent(sum('bounced'), accepted)}</td>
                  </tr>
                );
              })}
            </Table>
          )
        }
      </Loaded>
    </Card>
  );
}
