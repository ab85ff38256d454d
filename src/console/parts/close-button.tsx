import { useTexts } from '../texts.ts';
import { Icon } from './icon/icon.tsx';

/** Closes what lies over the page. `size`: the class of its size. */
export function CloseButton({
  size = 'icon-only',
  onClick,
}: {
  size?: 'icon-only' | 'small';
  onClick: () => void;
}) {
  const { t } = useTexts();
  return (
    <button
      type="button"
      class={`button ghost ${size}`}
      aria-label={t('app.close')}
      title={t('app.close')}
      onClick={onClick}
    >
      <Icon name="x" />
    </button>
  );
}
