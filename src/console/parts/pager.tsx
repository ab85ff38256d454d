import { useNavigation } from '../routing.ts';
import { useTexts } from '../texts.ts';

interface PagerProps {
  path: string;
  /** They remain in the address. */
  filters: Readonly<Record<string, string | undefined>>;
  nextKey: string | undefined;
}

/** Links to the first and to the next part of a list; its position is `lastKey` of the address. */
export function Pager({ path, filters, nextKey }: PagerProps) {
  const { t } = useTexts();
  const { href, location } = useNavigation();
  return (
    <p class="actions">
      {location.query['lastKey'] !== undefined && (
        <a class="button" href={href(path, filters)}>
          {t('app.first')}
        </a>
      )}
      {nextKey !== undefined && (
        <a class="button" href={href(path, { ...filters, lastKey: nextKey })}>
          {t('app.older')}
        </a>
      )}
    </p>
  );
}
