import { useNavigation } from '../routing.ts';
import { useTexts } from '../texts.ts';

interface PagerProps {
  path: string;
  /** They remain in the address. */
  filters: Readonly<Record<string, string | undefined>>;
  nextKey: string | undefined;
  /** For lists that are not newest first. */
  firstLabel?: string;
  nextLabel?: string;
}

/** Links to the first and to the next part of a list; its position is `lastKey` of the address. */
export function Pager({ path, filters, nextKey, firstLabel, nextLabel }: PagerProps) {
  const { t } = useTexts();
  const { href, location } = useNavigation();
  const isFirst = location.query['lastKey'] === undefined;
  if (isFirst && nextKey === undefined) return null;
  return (
    <p class="actions pager">
      {!isFirst && (
        <a class="button" href={href(path, filters)}>
          {firstLabel ?? t('app.first')}
        </a>
      )}
      {nextKey !== undefined && (
        <a class="button" href={href(path, { ...filters, lastKey: nextKey })}>
          {nextLabel ?? t('app.older')}
        </a>
      )}
    </p>
  );
}
