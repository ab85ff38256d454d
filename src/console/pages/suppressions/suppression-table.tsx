import type { ComponentChildren } from 'preact';
import { Time } from '../../parts/time.tsx';
import { Table } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import type { ListedSuppression } from './suppressions.tsx';

interface SuppressionTableProps {
  suppressions: readonly ListedSuppression[];
  /** The page that a reason leads to. */
  address?: string;
  /** Changes a suppression. */
  change?: ((suppression: ListedSuppression) => ComponentChildren) | undefined;
}

/** What is blocked for one address, and why. */
export function SuppressionTable({ suppressions, address, change }: SuppressionTableProps) {
  const { t } = useTexts();
  return (
    <Table
      label={t('page.suppressions')}
      isList
      heads={[
        t('suppressions.reason'),
        t('suppressions.stream'),
        { text: t('suppressions.since'), end: true },
        ...(change === undefined ? [] : [{ text: t('queue.change'), unseen: true } as const]),
      ]}
    >
      {suppressions.map((each) => {
        const reason = t(`suppressions.reason.${each.reason}`);
        return (
          <tr key={`${each.reason} ${each.stream}`}>
            <th scope="row">{address === undefined ? reason : <a href={address}>{reason}</a>}</th>
            <td class="second">{t(`suppressions.stream.${each.stream}`)}</td>
            <td class="when">
              <Time at={each.createdAt} />
            </td>
            {change !== undefined && <td class="aside">{change(each)}</td>}
          </tr>
        );
      })}
    </Table>
  );
}
